// Files that the program writes for its user: never over an existing one unless asked to, and never
// a write whose failure goes unseen. Those that appear when they are complete are io's.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "io/published_file.h"

namespace deltafin::cli {

using io::Descriptor;
using io::Existing;
using io::PublishedFile;
using io::system_error;
using io::write_all;

// A file that grows while the program runs, each append seen by readers at once.
class GrowingFile {
 public:
  // A path like /dev/stderr or /dev/fd/3 means that open descriptor, wherever it leads.
  // Errors: Usage when `path` exists and is not to be replaced; Io.
  static Result<GrowingFile> create(const std::string& path, Existing existing);

  const std::string& path() const { return path_; }
  // Errors: Io, naming the path.
  Status append(std::string_view bytes);

 private:
  GrowingFile(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::string path_;
  Descriptor descriptor_;
};

}  // namespace deltafin::cli
