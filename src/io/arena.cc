#include "io/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/checked_math.h"

namespace deltafin::io {

namespace {

std::unexpected<Error> refused(uint64_t bytes, const char* reason) {
  return fail(ErrorCode::OverBudget,
              fmt::format("the system refuses {} bytes of memory ({:.1f} GB): {}", bytes,
                          static_cast<double>(bytes) / 1e9, reason));
}

}  // namespace

Result<Arena> Arena::map(uint64_t bytes) {
  if (bytes == 0) return Arena();
  if (bytes > std::numeric_limits<uint64_t>::max() - 2 * kAlignment)
    return refused(bytes, "more than an address space");

  // One unit more than needed, so that an aligned piece lies inside; what is over is given back.
  const uint64_t size = round_up(bytes, kAlignment);
  void* const mapped = ::mmap(nullptr, size + kAlignment, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return refused(bytes, std::strerror(errno));
  const uint64_t start = reinterpret_cast<uintptr_t>(mapped);
  const uint64_t head = round_up(start, kAlignment) - start;
  std::byte* const aligned = static_cast<std::byte*>(mapped) + head;
  if (head > 0) ::munmap(mapped, head);
  if (head < kAlignment) ::munmap(aligned + size, kAlignment - head);

  // Advice: a kernel without huge pages says no, and the memory is as good, only slower.
  ::madvise(aligned, size, MADV_HUGEPAGE);
  return Arena({aligned, bytes});
}

void touch(std::span<std::byte> memory, ThreadTeam& team) {
  const uint64_t pieces = (memory.size() + Arena::kAlignment - 1) / Arena::kAlignment;
  team.parallel_for(pieces, [&](size_t piece) {
    const std::span<std::byte> bytes = memory.subspan(piece * Arena::kAlignment);
    const size_t size = std::min<size_t>(bytes.size(), Arena::kAlignment);
    // A write that changes nothing, a page at a time; what lies there may be in use already.
    constexpr size_t kPage = 4096;
    for (size_t at = 0; at < size; at += kPage)
      std::atomic_ref(*reinterpret_cast<unsigned char*>(&bytes[at])).fetch_or(0);
  });
}

void give_back(std::span<std::byte> memory) {
  constexpr uint64_t kPage = 4096;
  const uint64_t begin = round_up(reinterpret_cast<uintptr_t>(memory.data()), kPage);
  const uint64_t end = (reinterpret_cast<uintptr_t>(memory.data()) + memory.size()) / kPage * kPage;
  if (begin < end)
    ::madvise(memory.data() + (begin - reinterpret_cast<uintptr_t>(memory.data())), end - begin,
              MADV_DONTNEED);
}

Arena::Arena(Arena&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(bytes_, other.bytes_);  // `other` unmaps what was ours
  return *this;
}

Arena::~Arena() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), round_up(bytes_.size(), kAlignment));
}

}  // namespace deltafin::io
