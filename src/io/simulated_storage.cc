#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/philox.h"
#include "io/simulated.h"

namespace deltafin::io {

namespace {

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool names_file(const std::string& pattern, const std::string& path) {
  return path == pattern || path.ends_with("/" + pattern);
}

// FNV-1a, to tell files apart in the draws.
uint32_t digest(const std::string& text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

float unit_interval(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// "a/b/c" under the folder "a" gives "b"; nothing when the path is not below the folder.
std::string child_of(const std::string& folder, const std::string& path, bool& is_directory) {
  const std::string prefix = join_path(folder, "");
  if (folder.empty() || !path.starts_with(prefix) || path.size() == prefix.size()) return {};
  const size_t end = path.find('/', prefix.size());
  is_directory = end != std::string::npos;
  return path.substr(prefix.size(), end - prefix.size());
}

// What the plan does to one read.
struct Verdict {
  bool eio = false;
  uint64_t size_max = UINT64_MAX;  // bytes delivered at most
};

}  // namespace

struct SimulatedStorage::Disk {
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  using Place = std::pair<std::string, uint64_t>;  // file path, offset

  mutable std::mutex mutex;
  std::map<std::string, Bytes> files;
  FaultPlan plan;
  SimulatedStorageCounters counters;
  std::map<Place, uint32_t> visits;  // how often a read began there
  std::set<Place> forgiven;          // the next read there meets no transient fault

  Verdict judge(const std::string& path, uint64_t offset, uint64_t size);

 private:
  void apply_ranges(const std::string& path, uint64_t offset, uint64_t size, bool forgive,
                    Verdict& verdict) const;
  void apply_chance(const std::string& path, uint64_t offset, uint64_t size, bool forgive,
                    Verdict& verdict);
};

Verdict SimulatedStorage::Disk::judge(const std::string& path, uint64_t offset, uint64_t size) {
  const std::lock_guard lock(mutex);
  ++counters.reads;
  Verdict verdict;
  const bool forgive = forgiven.erase({path, offset}) > 0;
  apply_ranges(path, offset, size, forgive, verdict);
  apply_chance(path, offset, size, forgive, verdict);
  for (const Truncation& truncation : plan.truncations)
    if (names_file(truncation.file, path))
      verdict.size_max =
          std::min(verdict.size_max, truncation.size - std::min(truncation.size, offset));

  if (verdict.eio || verdict.size_max < size) {
    ++counters.faults;
    forgiven.insert({path, verdict.eio ? offset : offset + verdict.size_max});
  }
  return verdict;
}

void SimulatedStorage::Disk::apply_ranges(const std::string& path, uint64_t offset, uint64_t size,
                                          bool forgive, Verdict& verdict) const {
  for (const RangeFault& fault : plan.ranges) {
    const bool touched = offset < fault.offset + fault.size && fault.offset < offset + size;
    if (!touched || !names_file(fault.file, path)) continue;
    if (forgive && fault.duration == FaultDuration::Transient) continue;
    if (fault.kind == FaultKind::Eio) {
      verdict.eio = true;
    } else {
      verdict.size_max =
          std::min(verdict.size_max, fault.offset > offset ? fault.offset - offset : 0);
    }
  }
}

void SimulatedStorage::Disk::apply_chance(const std::string& path, uint64_t offset, uint64_t size,
                                          bool forgive, Verdict& verdict) {
  if (plan.eio_probability <= 0 && plan.short_read_probability <= 0) return;
  const bool permanent = plan.random_duration == FaultDuration::Permanent;
  // A permanent fault is there at every visit, so its draw does not know the visit.
  const uint32_t visit = permanent ? 0 : visits[{path, offset}]++;
  if (forgive && !permanent) return;
  const auto draws =
      philox4x32({uint32_t(offset), uint32_t(offset >> 32), digest(name_of(path)), visit},
                 {uint32_t(plan.seed), uint32_t(plan.seed >> 32)});
  if (unit_interval(draws[0]) < plan.eio_probability) verdict.eio = true;
  if (unit_interval(draws[1]) < plan.short_read_probability) {
    const uint64_t cut = (uint64_t{draws[2]} << 32 | draws[3]) % std::max<uint64_t>(size, 1);
    // A permanent short read that delivered something would only be continued behind the cut.
    verdict.size_max = std::min(verdict.size_max, permanent ? 0 : cut);
  }
}

namespace {

using Bytes = std::shared_ptr<const std::vector<std::byte>>;

class MemoryFile final : public File {
 public:
  MemoryFile(std::string path, Bytes bytes) : path_(std::move(path)), bytes_(std::move(bytes)) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return bytes_->size(); }

  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    if (offset >= bytes_->size()) return size_t{0};
    const size_t count = std::min<uint64_t>(into.size(), bytes_->size() - offset);
    std::copy_n(bytes_->begin() + static_cast<ptrdiff_t>(offset), count, into.begin());
    return count;
  }

 private:
  std::string path_;
  Bytes bytes_;
};

// Puts the plan between a file and its reader.
template <class Disk>
class FaultyFile final : public File {
 public:
  FaultyFile(std::unique_ptr<File> file, std::shared_ptr<Disk> disk)
      : file_(std::move(file)), disk_(std::move(disk)) {}

  const std::string& path() const override { return file_->path(); }
  uint64_t size() const override { return file_->size(); }

  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    const Verdict verdict = disk_->judge(path(), offset, into.size());
    if (verdict.eio)
      return fail(ErrorCode::Io,
                  fmt::format("{}: cannot read {} bytes at offset {}: Input/output error "
                              "(simulated)",
                              path(), into.size(), offset));
    return file_->read_at(offset, into.first(std::min<uint64_t>(into.size(), verdict.size_max)));
  }

 private:
  std::unique_ptr<File> file_;
  std::shared_ptr<Disk> disk_;
};

}  // namespace

SimulatedStorage::SimulatedStorage() : below_(nullptr), disk_(std::make_shared<Disk>()) {}
SimulatedStorage::SimulatedStorage(const Storage& below)
    : below_(&below), disk_(std::make_shared<Disk>()) {}
SimulatedStorage::~SimulatedStorage() = default;

void SimulatedStorage::add_file(const std::string& path, std::vector<std::byte> bytes) {
  const std::lock_guard lock(disk_->mutex);
  disk_->files[path] = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

void SimulatedStorage::add_file(const std::string& path, const std::string& text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  add_file(path, std::vector<std::byte>(bytes.begin(), bytes.end()));
}

void SimulatedStorage::set_faults(FaultPlan plan) {
  const std::lock_guard lock(disk_->mutex);
  disk_->plan = std::move(plan);
  disk_->visits.clear();
  disk_->forgiven.clear();
}

SimulatedStorageCounters SimulatedStorage::snapshot() const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->counters;
}

Result<std::unique_ptr<File>> SimulatedStorage::open(const std::string& path) const {
  std::unique_ptr<File> file;
  {
    const std::lock_guard lock(disk_->mutex);
    const auto found = disk_->files.find(path);
    if (found != disk_->files.end()) file = std::make_unique<MemoryFile>(path, found->second);
  }
  if (file == nullptr) {
    if (is_directory(path))
      return fail(ErrorCode::Io, fmt::format("{}: not a regular file but a directory", path));
    if (below_ == nullptr)
      return fail(ErrorCode::Io,
                  fmt::format("{}: cannot open: No such file or directory (simulated)", path));
    TRY(file, below_->open(path));
  }
  return std::make_unique<FaultyFile<Disk>>(std::move(file), disk_);
}

Result<std::vector<DirectoryEntry>> SimulatedStorage::list(const std::string& path) const {
  std::map<std::string, bool> children;  // name, whether it is a folder
  if (below_ != nullptr && below_->is_directory(path)) {
    TRY(const std::vector<DirectoryEntry> real, below_->list(path));
    for (const DirectoryEntry& entry : real) children[entry.name] = entry.is_directory;
  } else if (!is_directory(path)) {
    return fail(ErrorCode::Io, fmt::format("{}: cannot list: No such directory (simulated)", path));
  }
  {
    const std::lock_guard lock(disk_->mutex);
    for (const auto& [file, bytes] : disk_->files) {
      bool is_folder = false;
      const std::string child = child_of(path, file, is_folder);
      if (!child.empty()) children[child] = is_folder;
    }
  }
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, is_folder] : children) entries.push_back({name, is_folder});
  return entries;
}

bool SimulatedStorage::exists(const std::string& path) const {
  {
    const std::lock_guard lock(disk_->mutex);
    if (disk_->files.contains(path)) return true;
  }
  return is_directory(path) || (below_ != nullptr && below_->exists(path));
}

bool SimulatedStorage::is_directory(const std::string& path) const {
  if (below_ != nullptr && below_->is_directory(path)) return true;
  const std::lock_guard lock(disk_->mutex);
  return std::ranges::any_of(disk_->files, [&](const auto& file) {
    bool is_folder = false;
    return !child_of(path, file.first, is_folder).empty();
  });
}

}  // namespace deltafin::io
