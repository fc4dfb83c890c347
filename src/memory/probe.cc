#include "memory/probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/philox.h"
#include "io/arena.h"

namespace deltafin::memory {

namespace {

using Time = std::chrono::steady_clock;

// An expert of the models we run has 6 to 25 MB; disks are saturated by two to eight such reads.
constexpr uint64_t kReadBytes = 8ull << 20;
constexpr size_t kReadsAtOnce = 4;
// What direct reads need of place, size and memory, on any disk.
constexpr uint64_t kDirectAlignment = 4096;

constexpr uint64_t kMemoryBytes = 512ull << 20;
constexpr uint64_t kTaskBytes = 2ull << 20;  // a huge page

double seconds_since(Time::time_point start) {
  return std::chrono::duration<double>(Time::now() - start).count();
}

// One shard, opened past the page cache where that works.
class ProbedFile {
 public:
  explicit ProbedFile(const std::string& path) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    is_direct_ = descriptor_ >= 0;
    if (!is_direct_) descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status = {};
    if (descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0)
      size_ = static_cast<uint64_t>(status.st_size) / kDirectAlignment * kDirectAlignment;
  }
  ~ProbedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  ProbedFile(ProbedFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        is_direct_(other.is_direct_),
        size_(other.size_) {}
  ProbedFile& operator=(ProbedFile&&) = delete;

  uint64_t size() const { return size_; }  // whole pages
  bool is_direct() const { return is_direct_; }

  // Some file systems open for direct reads and then refuse them.
  bool can_read(std::span<std::byte> into) {
    const std::span page = into.first(kDirectAlignment);
    if (size_ == 0) return false;
    if (read(0, page) == page.size()) return true;
    if (!is_direct_) return false;
    is_direct_ = false;
    const int flags = ::fcntl(descriptor_, F_GETFL);
    return flags >= 0 && ::fcntl(descriptor_, F_SETFL, flags & ~O_DIRECT) == 0 &&
           read(0, page) == page.size();
  }

  uint64_t read(uint64_t offset, std::span<std::byte> into) const {
    const off_t place = static_cast<off_t>(offset);
    if (!is_direct_)
      ::posix_fadvise(descriptor_, place, static_cast<off_t>(into.size()), POSIX_FADV_DONTNEED);
    const ssize_t got = ::pread(descriptor_, into.data(), into.size(), place);
    return got > 0 ? static_cast<uint64_t>(got) : 0;
  }

 private:
  int descriptor_ = -1;
  bool is_direct_ = false;
  uint64_t size_ = 0;
};

// A place in one of the files, every byte of all being as likely.
struct Place {
  const ProbedFile* file = nullptr;
  uint64_t offset = 0, size = 0;
};

Place random_place(const std::vector<ProbedFile>& files, uint64_t all_bytes, Random& random) {
  uint64_t at = random.below(all_bytes);
  size_t file = 0;
  while (at >= files[file].size()) at -= files[file++].size();
  const uint64_t size = std::min(kReadBytes, files[file].size());
  return {&files[file],
          std::min(at / kDirectAlignment * kDirectAlignment, files[file].size() - size), size};
}

using Line = uint64_t __attribute__((vector_size(64)));  // a cache line; registers as there are

// Combines kTaskBytes, so that no read can be left out.
uint64_t combine(const std::byte* bytes) {
  Line sums[4] = {};
  for (uint64_t at = 0; at < kTaskBytes; at += 4 * sizeof(Line))
    for (size_t i = 0; i < 4; ++i) {
      Line line;
      std::memcpy(&line, bytes + at + i * sizeof(Line), sizeof line);
      sums[i] ^= line;
    }
  const Line all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  return all[0] ^ all[1] ^ all[2] ^ all[3] ^ all[4] ^ all[5] ^ all[6] ^ all[7];
}

}  // namespace

std::optional<DiskRate> probe_disk(std::span<const std::string> paths,
                                   std::chrono::milliseconds limit) {
  Result<io::Arena> arena = io::Arena::map(kReadsAtOnce * kReadBytes);
  if (!arena) return std::nullopt;
  std::vector<ProbedFile> files;
  uint64_t all_bytes = 0;
  bool is_direct = true;
  for (const std::string& path : paths) {
    ProbedFile file(path);
    if (!file.can_read(arena->bytes())) continue;
    all_bytes += file.size();
    is_direct = is_direct && file.is_direct();
    files.push_back(std::move(file));
  }
  if (files.empty()) return std::nullopt;

  ThreadTeam team(kReadsAtOnce, 1);  // as for one core: threads that wait for a disk must not spin
  std::atomic<uint64_t> done = 0;
  const Time::time_point start = Time::now(), end = start + limit;
  team.parallel_for(kReadsAtOnce, [&](size_t task) {
    Random random(task);
    const std::span<std::byte> into = arena->bytes().subspan(task * kReadBytes, kReadBytes);
    while (Time::now() < end) {
      const Place place = random_place(files, all_bytes, random);
      const uint64_t got = place.file->read(place.offset, into.first(place.size));
      if (got == 0) return;  // the disk fails: its reader will say so, and what came so far counts
      done += got;
    }
  });
  if (done == 0) return std::nullopt;
  return DiskRate{static_cast<double>(done) / seconds_since(start), is_direct};
}

std::optional<double> probe_memory(ThreadTeam& team, std::chrono::milliseconds limit) {
  Result<io::Arena> arena = io::Arena::map(kMemoryBytes);
  if (!arena) return std::nullopt;
  std::byte* const bytes = arena->bytes().data();
  // Pages that were never written are all the same page of zeros. The first touch is slow.
  const Time::time_point start = Time::now();
  size_t tasks = 0;
  while (tasks * kTaskBytes < kMemoryBytes && Time::now() < start + limit / 2) {
    team.parallel_for(team.size(), [&](size_t task) {
      const uint64_t at = (tasks + task) * kTaskBytes;
      if (at < kMemoryBytes) std::memset(bytes + at, 1, kTaskBytes);
    });
    tasks = std::min(tasks + team.size(), kMemoryBytes / kTaskBytes);
  }
  double best = 0;
  do {
    const Time::time_point pass = Time::now();
    team.parallel_for(tasks, [&](size_t task) {
      volatile uint64_t used = combine(bytes + task * kTaskBytes);
      (void)used;
    });
    best = std::max(best, static_cast<double>(tasks * kTaskBytes) / seconds_since(pass));
  } while (Time::now() < start + limit);
  return best;
}

double probe_arithmetic(ThreadTeam& team, const numerics::Kernels& kernels,
                        numerics::WeightFormat format, std::chrono::milliseconds limit) {
  // Like a task of prefill: some weight rows that stay in a second-level cache, and columns.
  constexpr size_t kRows = 64, kColumns = 64, kWidth = 2048;
  // Codes, scales and numbers near 1 in every format.
  const std::vector<std::byte> weights(kRows * kWidth * sizeof(float), std::byte{0x3f});
  const numerics::WeightMatrix matrix = {.format = format,
                                         .rows = kRows,
                                         .cols = kWidth,
                                         .data = weights.data(),
                                         .scales = weights.data()};
  const size_t stride = numerics::packed_size(kWidth);
  const std::vector<float> packed(kColumns * stride, 0.5f);
  std::vector<float> results(team.size() * kRows * kColumns);
  const double operations = 2.0 * kRows * kColumns * kWidth * static_cast<double>(team.size());
  double best = 0;
  const Time::time_point end = Time::now() + limit;
  do {
    const Time::time_point start = Time::now();
    team.parallel_for(team.size(), [&](size_t task) {
      kernels.product(matrix, packed.data(), stride, kColumns,
                      results.data() + task * kRows * kColumns, kRows);
    });
    best = std::max(best, operations / seconds_since(start));
  } while (Time::now() < end);
  return best;
}

}  // namespace deltafin::memory
