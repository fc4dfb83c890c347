// Mixture of experts: router, optional latent projections, routed experts, shared experts.
#pragma once

#include <functional>

#include "checkpoint/contract.h"
#include "model/linear.h"

namespace deltafin::model {

// What a layer with experts is made of, whatever the family.
struct MoeShape {
  numerics::RouterRule router;
  uint32_t expert_count = 0;
  uint32_t hidden_size = 0;
  uint32_t expert_width = 0;  // input and output of a routed expert
  bool latent = false;        // projections from hidden_size to expert_width and back
  bool latent_norm = false;   // plain RMSNorm with this epsilon
  float latent_norm_epsilon = 0;
  uint32_t shared_width = 0;  // inner width of the shared expert; 0: there is none
  bool shared_gate = false;   // its output is multiplied with sigmoid(W_g x), one number a row
  memory::ExpertFunction function;
};

//   m = W_down x  or  x                      the input of the routed experts
//   r = sum_e w_e Expert_e(m)                in router order
//   y = W_up RMS(r)  or  r
//   y + Shared(x)  or  y + sigmoid(W_g x) Shared(x)
//
// rows are normed; out.width == hidden size. The router and the shared expert read the full-width
// row. `meanwhile` is called once while experts are being read. Errors: the expert store's;
// BadModel for a router score that is not finite.
Status moe(Context& context, const MoeShape& shape, const memory::LayerWeights& weights,
           size_t layer, Rows rows, Rows out, const std::function<void()>& meanwhile);

// The feed-forward of a layer of either kind: moe(), or one dense network with the same function.
// Scratch memory is given back. Errors: those of moe().
Status ffn(Context& context, checkpoint::FfnKind kind, const MoeShape& shape,
           const memory::LayerWeights& weights, size_t layer, Rows rows, Rows out,
           const std::function<void()>& meanwhile);

// Tells the expert store what `layer`, the next one, will probably ask for, going by `rows`: the
// input of its feed-forward as far as it is known.
void expect_experts(Context& context, const MoeShape& shape, const memory::LayerWeights& weights,
                    size_t layer, Rows rows);
// So many rows of a pass are enough to tell.
inline constexpr size_t kHintRows = 64;

// Floats of scratch a row of moe() needs at most.
uint64_t moe_workspace_per_row(const MoeShape& shape);

}  // namespace deltafin::model
