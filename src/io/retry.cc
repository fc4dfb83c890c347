#include "io/retry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

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

bool can_be_direct(const File& file, uint64_t offset, std::span<const std::byte> into,
                   bool surroundings_writable) {
  const auto address = reinterpret_cast<uintptr_t>(into.data());
  if (into.empty() || address % kDirectAlignment != offset % kDirectAlignment) return false;
  const bool aligned = offset % kDirectAlignment == 0 && into.size() % kDirectAlignment == 0;
  if (!aligned && !surroundings_writable) return false;
  const bool inside = offset <= file.size() && into.size() <= file.size() - offset;
  return inside && file.can_read_direct();
}

ReadSteps::Step ReadSteps::next() const {
  const uint64_t begin = target_.offset + got_;
  if (!direct_) return {false, begin, target_.into.subspan(got_)};
  // A direct read that stopped between two borders begins again at the border before.
  const uint64_t first = begin - begin % kDirectAlignment;
  const uint64_t last = round_up(target_.offset + target_.into.size(), kDirectAlignment);
  std::byte* const place = target_.into.data() + got_ - (begin - first);
  return {true, first, {place, last - first}};
}

void ReadSteps::take(const Result<size_t>& answer) {
  const Step step = next();
  const uint64_t begin = target_.offset + got_;
  uint64_t gained = 0;
  if (answer) {
    CHECK(*answer <= step.into.size());
    const uint64_t end = step.offset + *answer;
    if (end > begin) gained = std::min<uint64_t>(end - begin, target_.into.size() - got_);
  }
  if (gained > 0) {
    got_ += gained;
    if (step.direct) outcome_.direct_bytes += gained;
    last_try_ = false;
  } else if (last_try_) {
    outcome_.status =
        not_delivered(target_.file, target_.offset, target_.into.size(), got_, answer);
    failed_ = true;
    return;
  } else {
    last_try_ = true;
    direct_ = false;
  }
  if (!done()) ++outcome_.retries;
}

Result<size_t> read_step(const File& file, const ReadSteps::Step& step) {
  return step.direct ? file.read_direct(step.offset, step.into)
                     : file.read_at(step.offset, step.into);
}

ReadOutcome read_with_retry(const ReadTarget& target) {
  ReadSteps steps(target);
  while (!steps.done()) steps.take(read_step(target.file, steps.next()));
  return std::move(steps.outcome());
}

}  // namespace deltafin::io
