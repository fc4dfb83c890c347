#include <utility>

#include "io/reader.h"

namespace deltafin::io {

Result<OpenedReader> open_reader(ReaderKind kind, DirectReads direct) {
  OpenedReader opened;
  if (kind != ReaderKind::Threads) {
    Result<std::unique_ptr<Reader>> uring = make_uring_reader({.direct = direct});
    if (uring) {
      opened.reader = std::move(*uring);
      return opened;
    }
    if (kind == ReaderKind::Uring) return std::unexpected(std::move(uring).error());
    opened.why_not_uring = uring.error().what;
  }
  opened.reader = make_thread_reader({.direct = direct});
  return opened;
}

}  // namespace deltafin::io
