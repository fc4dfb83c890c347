#include "model/feed_forward.h"

namespace deltafin::model {

void feed_forward(Context& context, const FeedForwardWeights& weights,
                  const memory::ExpertFunction& activation, PackedRows& rows, Rows out) {
  const Rows gate = linear(context, weights.gate, rows);
  const Rows up = linear(context, weights.up, rows);
  context.team.parallel_for(gate.count, [&](size_t i) {
    activation.activate(context.kernels, gate.row(i), up.row(i), gate.width);
  });
  PackedRows inner(context, gate);
  linear(context, weights.down, inner, out);
}

}  // namespace deltafin::model
