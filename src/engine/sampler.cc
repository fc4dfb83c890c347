#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/philox.h"

namespace deltafin::engine {

using numerics::Elementary;

namespace {

Status bad(const char* name, float found, const char* expected) {
  return fail(ErrorCode::Usage, fmt::format("{} is {}; expected {}", name, found, expected));
}

// Uniform in [0, 1), 24 bits, from (seed, choice, position) alone.
float uniform_at(const SamplingParameters& parameters, uint64_t position) {
  const std::array<uint32_t, 4> counter = {uint32_t(position), uint32_t(position >> 32),
                                           uint32_t(parameters.seed >> 32), 0};
  const std::array<uint32_t, 2> key = {uint32_t(parameters.seed), parameters.choice};
  return float(philox4x32(counter, key)[0] >> 8) * 0x1p-24f;
}

}  // namespace

Status validate(const SamplingParameters& p, size_t vocab_size) {
  if (!(p.temperature >= 0) || !std::isfinite(p.temperature))
    return bad("temperature", p.temperature, "a finite number of at least 0 (0 is greedy)");
  if (!(p.top_p > 0 && p.top_p <= 1)) return bad("top_p", p.top_p, "more than 0 and at most 1");
  if (!(p.min_p >= 0 && p.min_p < 1)) return bad("min_p", p.min_p, "at least 0 and less than 1");
  if (!(p.repetition_penalty > 0) || !std::isfinite(p.repetition_penalty))
    return bad("repetition_penalty", p.repetition_penalty, "a finite number above 0 (1 is none)");
  if (!std::isfinite(p.presence_penalty))
    return bad("presence_penalty", p.presence_penalty, "a finite number (0 is none)");
  if (!std::isfinite(p.frequency_penalty))
    return bad("frequency_penalty", p.frequency_penalty, "a finite number (0 is none)");
  for (const std::pair<TokenId, float>& bias : p.logit_bias) {
    if (bias.first < 0 || size_t(bias.first) >= vocab_size)
      return fail(ErrorCode::Usage, fmt::format("logit_bias names token {}; expected 0..{}",
                                                bias.first, vocab_size - 1));
    if (!std::isfinite(bias.second)) return bad("logit_bias", bias.second, "a finite number");
  }
  return {};
}

TokenId argmax(std::span<const float> logits) {
  CHECK(!logits.empty());
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best]) best = i;
  return TokenId(best);
}

std::vector<float> log_probabilities(const numerics::Kernels& kernels,
                                     std::span<const float> logits,
                                     std::span<const TokenId> tokens) {
  const float maximum = logits[size_t(argmax(logits))];
  std::vector<float> exps(logits.size());
  for (size_t i = 0; i < exps.size(); ++i) exps[i] = logits[i] - maximum;
  std::vector<float> results;
  for (const TokenId token : tokens) results.push_back(exps[size_t(token)]);
  kernels.elementary(Elementary::Exp, exps.data(), exps.data(), exps.size());
  float total = kernels.sum(exps.data(), exps.size());
  kernels.elementary(Elementary::Log, &total, &total, 1);
  for (float& result : results) result = result - total;
  return results;
}

std::vector<TokenId> most_probable(std::span<const float> logits, size_t count) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), TokenId{0});
  const auto end = ids.begin() + static_cast<ptrdiff_t>(std::min(count, ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](TokenId a, TokenId b) {
    const float x = logits[size_t(a)], y = logits[size_t(b)];
    return x != y ? x > y : a < b;
  });
  ids.erase(end, ids.end());
  return ids;
}

// Penalties in id order, then bias.
void Sampler::adjust(std::span<const TokenId> history) {
  const SamplingParameters& p = parameters_;
  if (p.repetition_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0) {
    std::map<TokenId, uint32_t> counts;
    for (const TokenId token : history) ++counts[token];
    for (const std::pair<const TokenId, uint32_t>& seen : counts) {
      float& logit = logits_[size_t(seen.first)];
      logit = logit > 0 ? logit / p.repetition_penalty : logit * p.repetition_penalty;
      logit = logit - p.presence_penalty;
      logit = logit - float(seen.second) * p.frequency_penalty;
    }
  }
  for (const std::pair<TokenId, float>& bias : p.logit_bias)
    logits_[size_t(bias.first)] += bias.second;
}

// Orders candidates by (probability descending, id) and returns how many stay.
size_t Sampler::cut_candidates() {
  const SamplingParameters& p = parameters_;
  const size_t n = probabilities_.size();
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::sort(order_, [&](TokenId a, TokenId b) {
    const float pa = probabilities_[size_t(a)], pb = probabilities_[size_t(b)];
    return pa != pb ? pa > pb : a < b;
  });
  size_t count = p.top_k == 0 ? n : std::min<size_t>(p.top_k, n);
  if (p.top_p < 1) {
    // The shares are those of what top-k left.
    float kept = 0;
    for (size_t i = 0; i < count; ++i) kept += probabilities_[size_t(order_[i])];
    const float target = p.top_p * kept;
    float sum = 0;
    for (size_t i = 0; i < count; ++i) {
      sum += probabilities_[size_t(order_[i])];
      if (sum >= target) count = i + 1;  // the one that crosses stays; ends the loop
    }
  }
  const float floor = p.min_p * probabilities_[size_t(order_[0])];
  while (count > 1 && probabilities_[size_t(order_[count - 1])] < floor) --count;
  return count;
}

TokenId Sampler::choose(std::span<const float> logits, uint64_t position,
                        std::span<const TokenId> history) {
  logits_.assign(logits.begin(), logits.end());
  adjust(history);
  if (parameters_.temperature == 0) return argmax(logits_);
  probabilities_.resize(logits_.size());
  // The maximum goes first, so that a tiny temperature cannot overflow to inf - inf.
  const float maximum = logits_[size_t(argmax(logits_))];
  for (float& logit : logits_) logit = (logit - maximum) / parameters_.temperature;
  kernels_.softmax(logits_.data(), probabilities_.data(), logits_.size());
  const size_t count = cut_candidates();

  float total = 0;
  for (size_t i = 0; i < count; ++i) total += probabilities_[size_t(order_[i])];
  const float target = uniform_at(parameters_, position) * total;
  float sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += probabilities_[size_t(order_[i])];
    if (target < sum) return order_[i];
  }
  return order_[count - 1];
}

}  // namespace deltafin::engine
