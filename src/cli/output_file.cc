#include "cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>

namespace deltafin::cli {

namespace {

// The descriptor that a path like /dev/stderr or /dev/fd/3 stands for. Opening such a path would
// open the file behind it anew, from its start.
std::optional<int> named_descriptor(const std::string& path) {
  constexpr std::string_view kFolder = "/dev/fd/";
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  if (!path.starts_with(kFolder)) return std::nullopt;
  int number = 0;
  const char* end = path.data() + path.size();
  const std::from_chars_result result = std::from_chars(path.data() + kFolder.size(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

Result<GrowingFile> GrowingFile::create(const std::string& path, Existing existing) {
  if (const std::optional<int> number = named_descriptor(path)) {
    Descriptor copy(::fcntl(*number, F_DUPFD_CLOEXEC, 3));
    if (!copy.is_open()) return io::cannot(path, "use", errno);
    return GrowingFile(path, std::move(copy));
  }
  Descriptor descriptor(io::open_to_write(path.c_str(), O_CREAT | O_EXCL));
  if (!descriptor.is_open() && errno == EEXIST) {
    const io::PathKind kind = io::kind_of(path);
    if (kind == io::PathKind::RegularFile && existing == Existing::Refuse)
      return io::refuse_existing(path);
    if (kind == io::PathKind::Nothing) return io::cannot(path, "create: a dangling link", EEXIST);
    descriptor = Descriptor(io::open_to_write(path.c_str(), O_TRUNC));
  }
  if (!descriptor.is_open()) return io::cannot(path, "create", errno);
  return GrowingFile(path, std::move(descriptor));
}

Status GrowingFile::append(std::string_view bytes) {
  const int number = write_all(descriptor_.get(), bytes);
  if (number != 0) return io::cannot(path_, "write", number);
  return {};
}

}  // namespace deltafin::cli
