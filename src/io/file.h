// The file system as a seam: everything the engine reads goes through these two interfaces, so a
// test can run the whole engine on a simulated disk (io/simulated.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/descriptor.h"

namespace deltafin::io {

// An open file, read by position. Thread-safe: any thread may read at any time.
class File {
 public:
  virtual ~File() = default;

  // The path as it was opened, for messages.
  virtual const std::string& path() const = 0;
  // Bytes, as seen when the file was opened.
  virtual uint64_t size() const = 0;
  // Reads up to into.size() bytes from `offset` and returns how many arrived: fewer at the end of
  // the file (0 at or past it), and possibly fewer anywhere. Interrupted calls are repeated inside.
  // Errors: Io, naming path and offset.
  virtual Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const = 0;

  // Whether direct reads work: the file system says so and a first read has shown it. The first
  // call may touch the disk.
  virtual bool can_read_direct() const { return false; }
  // read_at() past the page cache, where can_read_direct(). The offset, the size and the address of
  // `into` are multiples of kDirectAlignment; the last block of a file comes as short as it is.
  virtual Result<size_t> read_direct(uint64_t offset, std::span<std::byte> into) const;
  // Asks the system to forget these bytes of the file; what it cannot forget, it keeps.
  virtual void drop_cached(uint64_t /*offset*/, uint64_t /*size*/) const {}

  // For a reader that talks to the kernel itself: what read_at() and, after can_read_direct(),
  // read_direct() use. It stays open while it is held. Null: only these functions read this file.
  using Handle = std::shared_ptr<const Descriptor>;
  virtual Handle descriptor() const { return nullptr; }
  virtual Handle direct_descriptor() const { return nullptr; }
};

// What direct reads are aligned to, in the file and in memory: no disk in use asks for more, and
// pages are what the kernel pins.
inline constexpr uint64_t kDirectAlignment = 4096;

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
};

class Storage {
 public:
  virtual ~Storage() = default;

  // Opens a regular file; symbolic links are followed (snapshot folders link into blobs/).
  // Errors: Io, naming the path; a dangling link says where it points.
  virtual Result<std::unique_ptr<File>> open(const std::string& path) const = 0;
  // The entries of a folder except "." and "..", sorted by name. Errors: Io, naming the path.
  virtual Result<std::vector<DirectoryEntry>> list(const std::string& path) const = 0;
  virtual bool exists(const std::string& path) const = 0;        // follows links
  virtual bool is_directory(const std::string& path) const = 0;  // follows links
};

// The real one.
class PosixStorage final : public Storage {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path) const override;
  Result<std::vector<DirectoryEntry>> list(const std::string& path) const override;
  bool exists(const std::string& path) const override;
  bool is_directory(const std::string& path) const override;
};

// Fills `into` from `offset`, repeating short reads. Errors: Io, naming path, offset, what was
// expected and what was there.
Status read_exactly(const File& file, uint64_t offset, std::span<std::byte> into);

// The whole file as a string. Errors: Io; BadModel when it is larger than `limit_bytes`.
Result<std::string> read_text(const Storage& storage, const std::string& path,
                              uint64_t limit_bytes);

// "folder/name" with exactly one separator.
std::string join_path(const std::string& folder, const std::string& name);

}  // namespace deltafin::io
