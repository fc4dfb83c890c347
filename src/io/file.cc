#include "io/file.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/retry.h"

namespace deltafin::io {

Result<size_t> File::read_direct(uint64_t offset, std::span<std::byte> into) const {
  return fail(
      ErrorCode::Io,
      fmt::format("{}: cannot read {} bytes at offset {} past the page cache: not supported",
                  path(), into.size(), offset));
}

Status read_exactly(const File& file, uint64_t offset, std::span<std::byte> into) {
  return read_with_retry({file, offset, into}).status;
}

Result<std::string> read_text(const Storage& storage, const std::string& path,
                              uint64_t limit_bytes) {
  TRY(const std::unique_ptr<File> file, storage.open(path));
  if (file->size() > limit_bytes)
    return fail(
        ErrorCode::BadModel,
        fmt::format("{}: the file has {} bytes, which is more than the {} a file of its kind "
                    "may have",
                    path, file->size(), limit_bytes));
  std::string text(file->size(), '\0');
  TRY_STATUS(read_exactly(*file, 0, std::as_writable_bytes(std::span(text))));
  return text;
}

std::string join_path(const std::string& folder, const std::string& name) {
  if (folder.empty()) return name;
  const size_t folder_end = folder.find_last_not_of('/');
  const size_t name_start = std::min(name.find_first_not_of('/'), name.size());
  if (folder_end == std::string::npos) return "/" + name.substr(name_start);
  return folder.substr(0, folder_end + 1) + "/" + name.substr(name_start);
}

}  // namespace deltafin::io
