// Who goes next where prompts are read and answers are written on one engine. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace deltafin::engine {

// Time, while there is a prompt to read and an answer to write: half of it for either. An account
// and not a rhythm, for a layer of a prompt may take a part of what a decode pass takes, or many
// times as much.
class TimeShares {
 public:
  // Answers have had no more time than prompts.
  bool decode_is_due() const { return prompts_ahead_.count() >= 0; }
  void prefill_took(std::chrono::nanoseconds time) { prompts_ahead_ += at_least_something(time); }
  void decode_took(std::chrono::nanoseconds time) { prompts_ahead_ -= at_least_something(time); }
  // One of the two has nothing to do: what the other takes now is nobody's loss.
  void forget() { prompts_ahead_ = {}; }

 private:
  // On a clock that stands still they take turns.
  static std::chrono::nanoseconds at_least_something(std::chrono::nanoseconds time) {
    return std::max(time, std::chrono::nanoseconds(1));
  }

  std::chrono::nanoseconds prompts_ahead_{0};
};

// Rows of one prefill pass: how many of `wanted` each prompt gets, at most `rows` in all. They
// stand in order of arrival, and whoever came first is served first. But a prompt that needs more
// than one pass leaves up to half of this one to later prompts that can be read whole in it: they
// cost it little, and would else wait for a prompt a hundred times as long.
std::vector<size_t> share_rows(std::span<const size_t> wanted, size_t rows);

}  // namespace deltafin::engine
