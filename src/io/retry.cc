#include "io/retry.h"

#include <fmt/format.h>

#include "base/check.h"

namespace deltafin::io {

namespace {

std::unexpected<Error> not_delivered(const File& file, uint64_t offset, size_t expected, size_t got,
                                     const Result<size_t>& last) {
  const std::string what =
      fmt::format("{}: expected {} bytes at offset {}, got {}", file.path(), expected, offset, got);
  if (!last) return fail(last.error().code, what + " (tried twice): " + last.error().what);
  if (offset > file.size() || expected > file.size() - offset)
    return fail(ErrorCode::Io, fmt::format("{}: the file has only {} bytes", what, file.size()));
  return fail(ErrorCode::Io,
              fmt::format("{} (tried twice): the file had {} bytes when it was opened and was cut "
                          "short since",
                          what, file.size()));
}

}  // namespace

ReadOutcome read_with_retry(const File& file, uint64_t offset, std::span<std::byte> into) {
  ReadOutcome outcome;
  size_t got = 0;
  bool last_try = false;
  while (got < into.size()) {
    const Result<size_t> read = file.read_at(offset + got, into.subspan(got));
    if (read && *read > 0) {
      CHECK(*read <= into.size() - got);
      got += *read;
      last_try = false;
    } else if (last_try) {
      outcome.status = not_delivered(file, offset, into.size(), got, read);
      return outcome;
    } else {
      last_try = true;
    }
    if (got < into.size()) ++outcome.retries;
  }
  return outcome;
}

}  // namespace deltafin::io
