// Mixture of experts: router, optional latent projections, routed experts, shared experts.
#pragma once

#include "checkpoint/contract.h"
#include "model/linear.h"

namespace deltafin::model {

numerics::RouterRule router_rule(const checkpoint::KimiConfig& config);
memory::ExpertFunction expert_function(const checkpoint::KimiConfig& config);

//   Kimi-Linear   y = sum_e w_e Expert_e(x) + Shared(x)
//   K3 (latent)   m = W_down x;  r = RMS(sum_e w_e Expert_e(m));  y = W_up r + Shared(x)
//
// rows are normed; out.width == hidden size. The router and the shared experts read the full-width
// row. Errors: the expert store's; BadModel for a router score that is not finite.
Status moe(Context& context, const checkpoint::KimiConfig& config,
           const memory::LayerWeights& weights, size_t layer, Rows rows, Rows out);

uint64_t moe_workspace_per_row(const checkpoint::KimiConfig& config);

}  // namespace deltafin::model
