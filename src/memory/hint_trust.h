// Which advice is worth following: such as was right often enough. A read in vain costs little
// where the disk would have been idle, and dearly where bytes are what it runs out of; what is
// right nearly always pays in both cases (docs/decisions/0020-proven-hints.md).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace deltafin::memory {

// How often advice was right, by its place in its list: the first is the likeliest to be right.
// Lists of a token and of a whole prompt are judged apart. What is learned costs no reads, as
// advice that is not followed is judged, too. Not thread-safe: the engine thread owns it.
class HintTrust {
 public:
  static constexpr double kPrecisionLeast = 0.75;
  // The first few say little. Beyond some tokens of some dozens of layers the past fades: a change
  // of subject is noticed soon.
  static constexpr uint32_t kJudgementsLeast = 16, kJudgementsKept = 256;

  // Whether advice at `place` in a list of `count` was right in kPrecisionLeast of the cases that
  // were judged lately. Without any experience: no.
  bool is_proven(size_t place, size_t count) const {
    const Record& record = records_[row_of(count)][column_of(place, count)];
    return record.judged >= kJudgementsLeast && record.precision >= kPrecisionLeast;
  }

  void judge(size_t place, size_t count, bool was_right) {
    Record& record = records_[row_of(count)][column_of(place, count)];
    if (record.judged < kJudgementsKept) ++record.judged;
    record.precision += (double(was_right) - record.precision) / record.judged;
  }

 private:
  struct Record {
    double precision = 0;
    uint32_t judged = 0;  // at most kJudgementsKept
  };

  static constexpr size_t kRows = 12;     // lists of 1, 2..3, 4..7, ... experts
  static constexpr size_t kColumns = 16;  // sixteenths of a list

  static size_t row_of(size_t count) {
    const size_t row = size_t(std::bit_width(count)) - 1;
    return row < kRows ? row : kRows - 1;
  }
  static size_t column_of(size_t place, size_t count) { return place * kColumns / count; }

  std::array<std::array<Record, kColumns>, kRows> records_{};
};

}  // namespace deltafin::memory
