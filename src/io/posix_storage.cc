#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
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
#include "io/pooled_descriptor.h"

namespace deltafin::io {

namespace {

// One pread moves at most this: the kernel stops a little below 2 GiB anyway.
constexpr size_t kReadBytesMax = size_t{1} << 30;

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

// Whoever replaced the file under its name since must not change what we read.
bool is_same_file(int a, int b) {
  struct stat of_a = {}, of_b = {};
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
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
      : path_(std::move(path)), buffered_(path_, 0, std::move(descriptor)), size_(size) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }

  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    return read(buffered_, offset, into);
  }

  bool can_read_direct() const override { return direct() != nullptr; }
  Result<size_t> read_direct(uint64_t offset, std::span<std::byte> into) const override {
    if (!can_read_direct()) return File::read_direct(offset, into);
    return read(*direct(), offset, into);
  }
  void drop_cached(uint64_t offset, uint64_t size) const override {
    if (const Handle handle = descriptor())
      ::posix_fadvise(handle->get(), static_cast<off_t>(offset), static_cast<off_t>(size),
                      POSIX_FADV_DONTNEED);
  }

  Handle descriptor() const override { return buffered_.get().value_or(nullptr); }
  Handle direct_descriptor() const override {
    return can_read_direct() ? direct()->get().value_or(nullptr) : nullptr;
  }

 private:
  Result<size_t> read(const PooledDescriptor& descriptor, uint64_t offset,
                      std::span<std::byte> into) const {
    // No file reaches beyond what off_t can say, so nothing is there to read.
    if (offset > uint64_t{std::numeric_limits<off_t>::max()}) return size_t{0};
    TRY(const Handle handle, descriptor.get());
    const std::span<std::byte> wanted = into.first(std::min(into.size(), kReadBytesMax));
    const ssize_t got = repeat_pread(handle->get(), wanted, offset);
    if (got < 0) return cannot_read(path_, wanted.size(), offset, errno);
    return static_cast<size_t>(got);
  }

  // Null where direct reads do not work. Not before somebody asks: small files need none.
  const PooledDescriptor* direct() const {
    std::call_once(direct_once_, [this] { open_direct(); });
    return direct_ ? &*direct_ : nullptr;
  }
  void open_direct() const {
    const Handle same = descriptor();
    Descriptor opened(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
    if (same == nullptr || !opened.is_open() || !is_same_file(opened.get(), same->get()) ||
        !alignment_suffices(opened.get()) || !probe(opened.get(), size_))
      return;
    direct_.emplace(path_, O_DIRECT, std::move(opened));
  }

  std::string path_;
  PooledDescriptor buffered_;
  uint64_t size_;
  mutable std::once_flag direct_once_;
  mutable std::optional<PooledDescriptor> direct_;
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
