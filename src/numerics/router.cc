#include "numerics/router.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace deltafin::numerics {

namespace {

// DeepSeek's guard against a zero sum; far below any sum of sigmoid scores.
constexpr float kRenormalizeEpsilon = 1e-20f;

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

// -inf for every expert outside the `kept` strongest groups. Equal strengths: the lower group.
void mask_weak_groups(std::span<float> pick, uint32_t group_count, uint32_t kept) {
  const size_t size = pick.size() / group_count;
  std::vector<float> strength(group_count);
  for (uint32_t g = 0; g < group_count; ++g) {
    float best = -INFINITY, second = -INFINITY;
    for (const float value : pick.subspan(g * size, size)) {
      if (value > best) {
        second = best;
        best = value;
      } else if (value > second) {
        second = value;
      }
    }
    strength[g] = best + second;
  }
  std::vector<uint32_t> order(group_count);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    return strength[a] != strength[b] ? strength[a] > strength[b] : a < b;
  });
  for (uint32_t i = kept; i < group_count; ++i)
    std::ranges::fill(pick.subspan(order[i] * size, size), -INFINITY);
}

// The top_k best of `pick` in router order, by insertion: top_k is at most a few dozen.
void select_best(std::span<const float> pick, std::span<Route> routes) {
  size_t count = 0;
  for (uint32_t expert = 0; expert < pick.size(); ++expert) {
    if (count == routes.size() && !(pick[expert] > pick[routes[count - 1].expert])) continue;
    size_t at = count < routes.size() ? count++ : count - 1;
    // Strictly better only: an equal pick stays behind the lower id that came before.
    for (; at > 0 && pick[expert] > pick[routes[at - 1].expert]; --at) routes[at] = routes[at - 1];
    routes[at].expert = expert;
  }
}

}  // namespace

bool choose_routes(const Kernels& kernels, const RouterRule& rule, std::span<const float> logits,
                   std::span<const float> bias, std::vector<float>& scratch,
                   std::span<Route> routes) {
  const size_t n = logits.size();
  CHECK(routes.size() == rule.top_k && rule.top_k <= n);
  CHECK(bias.empty() || bias.size() == n);
  scratch.resize(2 * n);
  const std::span<float> score = std::span(scratch).first(n), pick = std::span(scratch).last(n);
  if (!all_finite(logits)) return false;
  if (rule.score == RouterScore::Sigmoid) {
    kernels.elementary(Elementary::Sigmoid, logits.data(), score.data(), n);
  } else {
    kernels.softmax(logits.data(), score.data(), n);
  }
  for (size_t i = 0; i < n; ++i) pick[i] = bias.empty() ? score[i] : score[i] + bias[i];
  if (!all_finite(pick)) return false;
  if (rule.group_count > rule.groups_kept)
    mask_weak_groups(pick, rule.group_count, rule.groups_kept);

  select_best(pick, routes);
  for (Route& route : routes) route.weight = score[route.expert];
  if (rule.renormalize && rule.top_k > 1) {
    float sum = 0;
    for (const Route& route : routes) sum += route.weight;
    sum += kRenormalizeEpsilon;
    for (Route& route : routes) route.weight /= sum;
  }
  for (Route& route : routes) route.weight *= rule.scale;
  return true;
}

}  // namespace deltafin::numerics
