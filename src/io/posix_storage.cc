#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "io/file.h"

namespace deltafin::io {

namespace {

// One pread moves at most this: the kernel stops a little below 2 GiB anyway.
constexpr size_t kReadBytesMax = size_t{1} << 30;

std::string os_error(int number) {
  // strerror_r of glibc returns the text and may leave the buffer alone.
  char buffer[256] = {};
  return strerror_r(number, buffer, sizeof buffer);
}

// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

class PosixFile final : public File {
 public:
  PosixFile(std::string path, Descriptor descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }

  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    // No file reaches beyond what off_t can say, so nothing is there to read.
    if (offset > uint64_t{std::numeric_limits<off_t>::max()}) return size_t{0};
    const size_t wanted = std::min(into.size(), kReadBytesMax);
    for (;;) {
      const ssize_t got =
          ::pread(descriptor_.get(), into.data(), wanted, static_cast<off_t>(offset));
      if (got >= 0) return static_cast<size_t>(got);
      if (errno == EINTR) continue;
      return fail(ErrorCode::Io, fmt::format("{}: cannot read {} bytes at offset {}: {}", path_,
                                             wanted, offset, os_error(errno)));
    }
  }

 private:
  std::string path_;
  Descriptor descriptor_;
  uint64_t size_;
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
  // O_NONBLOCK: opening a FIFO nobody writes to must be refused, not waited for. It has no effect
  // on a regular file.
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
