// Durable output: a file that is complete and on the disk when its name appears, and what else
// writes bytes for good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "io/descriptor.h"

namespace deltafin::io {

// What to do when a regular file of that name is there. Devices and pipes are simply written to.
enum class Existing : uint8_t { Refuse, Replace };

// Writes everything, however the system cuts it. Returns 0, or errno of the write that failed.
int write_all(int descriptor, std::string_view bytes);

// The text of an error number.
std::string system_error(int number);

// The error of a file that exists and is not to be replaced. Usage.
std::unexpected<Error> refuse_existing(const std::string& path);
// "<path>: cannot <what>: <text of the error number>". Io.
std::unexpected<Error> cannot(const std::string& path, const char* what, int number);

enum class PathKind : uint8_t { Nothing, RegularFile, Other };
PathKind kind_of(const std::string& path);

// Opens for writing with the flags in addition, repeating interrupted calls. -1 and errno.
int open_to_write(const char* path, int flags);

// A file that appears under its name complete and fsynced, or not at all. It is written as
// ".<name>.<process id>.partial" in the same folder; without publish() that is removed.
class PublishedFile {
 public:
  // Errors: Usage when `path` exists and is not to be replaced, or is no regular file; Io.
  static Result<PublishedFile> create(const std::string& path, Existing existing);
  PublishedFile(PublishedFile&& other) noexcept = default;
  PublishedFile& operator=(PublishedFile&&) = delete;
  ~PublishedFile();

  const std::string& path() const { return path_; }
  // Errors: Io, naming the path.
  Status append(std::span<const std::byte> bytes);
  Status append(std::string_view text) { return append(std::as_bytes(std::span(text))); }
  // The last call. Errors: Io; Usage when somebody else made a file of that name meanwhile.
  Status publish();

 private:
  PublishedFile(std::string path, std::string partial_path, Descriptor descriptor,
                Existing existing)
      : path_(std::move(path)),
        partial_path_(std::move(partial_path)),
        descriptor_(std::move(descriptor)),
        existing_(existing) {}

  std::string path_, partial_path_;
  Descriptor descriptor_;  // open until published
  Existing existing_;
};

}  // namespace deltafin::io
