// Which experts a token goes to, and with what weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numerics/kernels.h"

namespace deltafin::numerics {

enum class RouterScore : uint8_t { Sigmoid, Softmax };

struct RouterRule {
  uint32_t top_k = 0;
  RouterScore score = RouterScore::Sigmoid;
  bool renormalize = true;  // divide by the sum of the chosen scores (only when top_k > 1)
  float scale = 1;
  // With group_count > groups_kept only experts of the best groups can be chosen; a group's
  // strength is the sum of its two best biased scores.
  uint32_t group_count = 1;
  uint32_t groups_kept = 1;
};

struct Route {
  uint32_t expert = 0;
  float weight = 0;
};

// Chooses routes[0 .. top_k) from `logits`, best first.
//
//   s    = sigmoid(logits), or softmax(logits)
//   pick = s + bias                        selection only; bias may be empty
//   routes in *router order*: pick descending, equal picks (as floats, so -0 == +0) by lower expert
//   id weight = s WITHOUT the bias, divided by (sum in router order from +0, plus 1e-20), times
//   scale
//
// Returns false, leaving `routes` unspecified, when a logit or a score is not finite.
// scratch is resized to what is needed. Source: K3 and DeepSeek-V3 modelling code ("noaux_tc"); the
// unbiased weight is a settled point, see docs/numerics.md.
bool choose_routes(const Kernels& kernels, const RouterRule& rule, std::span<const float> logits,
                   std::span<const float> bias, std::vector<float>& scratch,
                   std::span<Route> routes);

}  // namespace deltafin::numerics
