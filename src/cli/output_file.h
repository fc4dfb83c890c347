// Files that the program writes for its user: never over an existing one unless asked to, and never
// a write whose failure goes unseen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace deltafin::cli {

// What to do when a regular file of that name is there. Devices and pipes are simply written to.
enum class Existing : uint8_t { Refuse, Replace };

// Writes everything, however the system cuts it. Returns 0, or errno of the write that failed.
int write_all(int descriptor, std::string_view bytes);

// The text of an error number.
std::string system_error(int number);

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

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

}  // namespace deltafin::cli
