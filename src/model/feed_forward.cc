#include "model/feed_forward.h"

namespace deltafin::model {

void feed_forward(Context& context, const FeedForwardWeights& weights,
                  const memory::ExpertFunction& activation, PackedRows& rows, Rows out) {
  const Rows gate = linear(context, weights.gate, rows);
  const Rows up = linear(context, weights.up, rows);
  context.team.parallel_for(gate.count, [&](size_t i) {
    if (activation.activation == checkpoint::Activation::SwiGlu) {
      context.kernels.swiglu(gate.row(i), up.row(i), gate.row(i), gate.width);
    } else {
      const float* linear_beta =
          activation.situ_linear_beta ? &*activation.situ_linear_beta : nullptr;
      context.kernels.situ_glu(gate.row(i), up.row(i), activation.situ_beta, linear_beta,
                               gate.row(i), gate.width);
    }
  });
  PackedRows inner(context, gate);
  linear(context, weights.down, inner, out);
}

}  // namespace deltafin::model
