// Who goes next where prompts are read and answers are written on one engine. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace deltafin::engine {

// Time, while there is a prompt to read and an answer to write: answers keep half of the rate they
// had alone, and a twentieth as a reserve, for what a pass will take is known only afterwards. An
// account and not a rhythm, for a layer of a prompt may take a part of what a decode pass takes, or
// many times as much.
//
// A prompt's pass also takes experts out of memory that the answers had there, so their passes take
// longer than alone. That is taken off the prompt's share, down to a third of the time.
class TimeShares {
 public:
  bool decode_is_due() const { return prompts_ahead_.count() >= 0; }
  void prefill_took(std::chrono::nanoseconds time);
  // A pass over so many rows, while a prompt waits.
  void decode_took(std::chrono::nanoseconds time, size_t row_count);
  // The same while none waits. What was taken before is forgotten.
  void decode_took_alone(std::chrono::nanoseconds time, size_t row_count);
  // There is no answer to write: what prompts take is nobody's loss.
  void forget() { prompts_ahead_ = {}; }

 private:
  std::chrono::nanoseconds prompts_ahead_{0};         // of what they may take
  std::map<size_t, std::chrono::nanoseconds> alone_;  // what passes take, by their rows
};

// Rows of one prefill pass: how many of `wanted` each prompt gets, at most `rows` in all. They
// stand in order of arrival, and whoever came first is served first. But a prompt that needs more
// than one pass leaves up to half of this one to later prompts that can be read whole in it: they
// cost it little, and would else wait for a prompt a hundred times as long.
std::vector<size_t> share_rows(std::span<const size_t> wanted, size_t rows);

}  // namespace deltafin::engine
