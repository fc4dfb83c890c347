#include "io/os_error.h"

#include <fmt/format.h>

#include <cstring>

namespace deltafin::io {

std::string os_error(int number) {
  // strerror_r of glibc returns the text and may leave the buffer alone.
  char buffer[256] = {};
  return strerror_r(number, buffer, sizeof buffer);
}

std::unexpected<Error> cannot_read(const std::string& path, size_t size, uint64_t offset,
                                   int number) {
  return fail(ErrorCode::Io, fmt::format("{}: cannot read {} bytes at offset {}: {}", path, size,
                                         offset, os_error(number)));
}

}  // namespace deltafin::io
