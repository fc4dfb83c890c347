#include "io/published_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace deltafin::io {

namespace {

constexpr mode_t kFileMode = 0666;  // less the umask

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Makes a new name in a folder survive a power cut.
Status sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.is_open()) return cannot(folder, "open the folder", errno);
  // Some file systems cannot sync a folder and say EINVAL; they have nothing to sync.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL)
    return cannot(folder, "sync the folder", errno);
  return {};
}

}  // namespace

std::unexpected<Error> cannot(const std::string& path, const char* what, int number) {
  return fail(ErrorCode::Io, fmt::format("{}: cannot {}: {}", path, what, system_error(number)));
}

std::unexpected<Error> refuse_existing(const std::string& path) {
  return fail(
      ErrorCode::Usage,
      fmt::format("{} exists already\n  give another name, or --force to replace it", path));
}

int open_to_write(const char* path, int flags) {
  for (;;) {
    const int number = ::open(path, flags | O_WRONLY | O_CLOEXEC, kFileMode);
    if (number >= 0 || errno != EINTR) return number;
  }
}

PathKind kind_of(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return PathKind::Nothing;
  return S_ISREG(info.st_mode) ? PathKind::RegularFile : PathKind::Other;
}

std::string system_error(int number) {
  char buffer[256] = {};
  return strerror_r(number, buffer, sizeof buffer);  // glibc's: returns the text
}

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      // Whoever shares our terminal or pipe made it non-blocking.
      pollfd wait = {.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

Result<PublishedFile> PublishedFile::create(const std::string& path, Existing existing) {
  switch (kind_of(path)) {
    case PathKind::Nothing:
      break;
    case PathKind::Other:
      return fail(ErrorCode::Usage, path + " is not a file\n  give the name of a new file");
    case PathKind::RegularFile:
      if (existing == Existing::Refuse) return refuse_existing(path);
  }
  const std::string folder = folder_of(path);
  const std::string name = path.substr(path.find_last_of('/') + 1);
  if (name.empty())
    return fail(ErrorCode::Usage, fmt::format("\"{}\" is not the name of a file", path));
  const std::string partial = fmt::format("{}/.{}.{}.partial", folder, name, ::getpid());
  Descriptor descriptor(open_to_write(partial.c_str(), O_CREAT | O_EXCL));
  if (!descriptor.is_open()) return cannot(path, "create a file in that folder", errno);
  return PublishedFile(path, partial, std::move(descriptor), existing);
}

PublishedFile::~PublishedFile() {
  if (descriptor_.is_open()) ::unlink(partial_path_.c_str());
}

Status PublishedFile::append(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const int number = write_all(descriptor_.get(), text);
  if (number != 0) return cannot(path_, "write", number);
  return {};
}

Status PublishedFile::publish() {
  if (::fsync(descriptor_.get()) != 0) return cannot(path_, "sync", errno);
  const unsigned flags = existing_ == Existing::Refuse ? RENAME_NOREPLACE : 0;
  int failed = ::renameat2(AT_FDCWD, partial_path_.c_str(), AT_FDCWD, path_.c_str(), flags);
  // A file system that cannot refuse to replace: we looked when we started.
  if (failed != 0 && errno == EINVAL) failed = ::rename(partial_path_.c_str(), path_.c_str());
  if (failed != 0 && errno == EEXIST) return refuse_existing(path_);
  if (failed != 0) return cannot(path_, "rename the finished file to this", errno);
  const Descriptor done(descriptor_.release());
  return sync_folder_of(path_);
}

}  // namespace deltafin::io
