#include "engine/fair_shares.h"

#include <algorithm>

namespace deltafin::engine {

using std::chrono::nanoseconds;

namespace {

// What answers keep of the rate they had alone.
constexpr int64_t kKeptNumerator = 11, kKeptDenominator = 20;

// In which a pass that takes `alone` alone has to be over.
nanoseconds turn(nanoseconds alone) { return alone * kKeptDenominator / kKeptNumerator; }

// So that they take turns on a clock that stands still.
nanoseconds at_least_something(nanoseconds time) { return std::max(time, nanoseconds(1)); }

}  // namespace

void TimeShares::prefill_took(nanoseconds time) { prompts_ahead_ += at_least_something(time); }

void TimeShares::decode_took(nanoseconds time, size_t row_count) {
  time = at_least_something(time);
  const auto known = alone_.find(row_count);
  const nanoseconds alone = known == alone_.end() ? time : known->second;
  const nanoseconds least = (time + nanoseconds(1)) / 2;
  prompts_ahead_ -= std::clamp(turn(alone) - time, least, std::max(least, turn(time) - time));
}

void TimeShares::decode_took_alone(nanoseconds time, size_t row_count) {
  prompts_ahead_ = {};
  const auto [known, is_new] = alone_.try_emplace(row_count, time);
  if (!is_new) known->second = (3 * known->second + time) / 4;
}

std::vector<size_t> share_rows(std::span<const size_t> wanted, size_t rows) {
  std::vector<size_t> shares(wanted.size(), 0);
  if (wanted.empty()) return shares;
  const bool first_needs_all = wanted[0] > rows;
  size_t left = first_needs_all ? rows / 2 : rows;
  for (size_t i = first_needs_all ? 1 : 0; i < wanted.size(); ++i) {
    if (first_needs_all && wanted[i] > left) continue;
    shares[i] = std::min(wanted[i], left);
    left -= shares[i];
  }
  if (first_needs_all) shares[0] = rows - rows / 2 + left;
  return shares;
}

}  // namespace deltafin::engine
