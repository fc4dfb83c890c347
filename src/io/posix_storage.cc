#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "io/file.h"
#include "io/os_error.h"

namespace deltafin::io {

namespace {

// One pread moves at most this: the kernel stops a little below 2 GiB anyway.
constexpr size_t kReadBytesMax = size_t{1} << 30;

// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Opens a file that was already found to be one; empty when that fails.
std::optional<Descriptor> reopen(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) return std::nullopt;
  return Descriptor(fd);
}

// Descriptors below the limit that second descriptors of files leave to everybody else.
constexpr uint64_t kDescriptorsLeft = 16;

bool descriptors_are_scarce(int fd) {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  return static_cast<uint64_t>(fd) + kDescriptorsLeft > limit.rlim_cur;
}

bool is_same_file(int a, int b) {
  struct stat of_a = {}, of_b = {};
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

// Whether what the kernel knows of direct reads of this file lets ours be made. A kernel before 6.1
// does not say; then the probe decides alone.
bool alignment_suffices(int fd) {
  struct statx info = {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) != 0) return true;
  if ((info.stx_mask & STATX_DIOALIGN) == 0) return true;
  const auto suffices = [](uint64_t alignment) {
    return alignment > 0 && kDirectAlignment % alignment == 0;
  };
  return suffices(info.stx_dio_mem_align) && suffices(info.stx_dio_offset_align);
}

ssize_t repeat_pread(int fd, std::span<std::byte> into, uint64_t offset) {
  for (;;) {
    const ssize_t got = ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
    if (got >= 0 || errno != EINTR) return got;
  }
}

// Reads the first block and looks whether as much comes as there is.
bool probe(int fd, uint64_t file_size) {
  struct alignas(kDirectAlignment) Block {
    std::byte bytes[kDirectAlignment];
  };
  const std::unique_ptr<Block> block(new (std::nothrow) Block);
  if (block == nullptr) return false;
  const ssize_t got = repeat_pread(fd, block->bytes, 0);
  return got >= 0 && static_cast<uint64_t>(got) == std::min(file_size, kDirectAlignment);
}

class PosixFile final : public File {
 public:
  PosixFile(std::string path, Descriptor descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }

  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    return read(descriptor_.get(), offset, into);
  }

  bool can_read_direct() const override { return direct_descriptor() >= 0; }
  Result<size_t> read_direct(uint64_t offset, std::span<std::byte> into) const override {
    if (!can_read_direct()) return File::read_direct(offset, into);
    return read(direct_descriptor(), offset, into);
  }
  void drop_cached(uint64_t offset, uint64_t size) const override {
    ::posix_fadvise(descriptor_.get(), static_cast<off_t>(offset), static_cast<off_t>(size),
                    POSIX_FADV_DONTNEED);
  }

  int descriptor() const override { return descriptor_.get(); }
  int direct_descriptor() const override {
    std::call_once(direct_once_, [this] { direct_ = open_direct(); });
    return direct_ ? direct_->get() : -1;
  }

 private:
  Result<size_t> read(int fd, uint64_t offset, std::span<std::byte> into) const {
    // No file reaches beyond what off_t can say, so nothing is there to read.
    if (offset > uint64_t{std::numeric_limits<off_t>::max()}) return size_t{0};
    const std::span<std::byte> wanted = into.first(std::min(into.size(), kReadBytesMax));
    const ssize_t got = repeat_pread(fd, wanted, offset);
    if (got < 0) return cannot_read(path_, wanted.size(), offset, errno);
    return static_cast<size_t>(got);
  }

  // Not before somebody asks: small files need none, and descriptors are few.
  std::optional<Descriptor> open_direct() const {
    std::optional<Descriptor> direct = reopen(path_, O_DIRECT);
    if (!direct || descriptors_are_scarce(direct->get())) return std::nullopt;
    // Whoever replaced the file under its name since must not change what we read.
    if (!is_same_file(direct->get(), descriptor_.get())) return std::nullopt;
    if (!alignment_suffices(direct->get()) || !probe(direct->get(), size_)) return std::nullopt;
    return direct;
  }

  std::string path_;
  Descriptor descriptor_;
  uint64_t size_;
  mutable std::once_flag direct_once_;
  mutable std::optional<Descriptor> direct_;
};

// Where a symbolic link points; empty when `path` is not one.
std::string link_target(const std::string& path) {
  char target[4096];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : std::string();
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::unexpected<Error> cannot_open(const std::string& path, int number) {
  const std::string target = link_target(path);
  if (number == ENOENT && !target.empty())
    return fail(ErrorCode::Io,
                fmt::format("{}: cannot open: it is a symbolic link to {}, which does not exist "
                            "(download or copy that file too)",
                            path, target));
  return fail(ErrorCode::Io, fmt::format("{}: cannot open: {}", path, os_error(number)));
}

// Follows links.
std::optional<struct stat> stat_of(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

}  // namespace

Result<std::unique_ptr<File>> PosixStorage::open(const std::string& path) const {
  // O_NONBLOCK: opening a FIFO nobody writes to must be refused, not waited for.
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return cannot_open(path, errno);
  Descriptor descriptor(fd);

  struct stat info = {};
  if (::fstat(fd, &info) != 0) return cannot_open(path, errno);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::Io,
                fmt::format("{}: not a regular file but {}", path, kind_of(info.st_mode)));
  // io_uring would give up on reads that have to wait, where the file system does not know how to.
  if (::fcntl(fd, F_SETFL, 0) != 0) return cannot_open(path, errno);
  return std::make_unique<PosixFile>(path, std::move(descriptor),
                                     static_cast<uint64_t>(info.st_size));
}

Result<std::vector<DirectoryEntry>> PosixStorage::list(const std::string& path) const {
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr)
    return fail(ErrorCode::Io, fmt::format("{}: cannot list: {}", path, os_error(errno)));

  std::vector<DirectoryEntry> entries;
  errno = 0;  // readdir tells its end from an error only by errno
  while (const dirent* found = ::readdir(folder)) {
    const std::string name = found->d_name;
    if (name != "." && name != "..") entries.push_back({name, is_directory(join_path(path, name))});
    errno = 0;
  }
  const int number = errno;
  ::closedir(folder);
  if (number != 0)
    return fail(ErrorCode::Io, fmt::format("{}: cannot list: {}", path, os_error(number)));
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

bool PosixStorage::exists(const std::string& path) const { return stat_of(path).has_value(); }

bool PosixStorage::is_directory(const std::string& path) const {
  const std::optional<struct stat> info = stat_of(path);
  return info && S_ISDIR(info->st_mode);
}

}  // namespace deltafin::io
