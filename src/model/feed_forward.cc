#include "model/feed_forward.h"

namespace deltafin::model {

void feed_forward(Context& context, const FeedForwardWeights& weights,
                  const memory::ExpertFunction& activation, PackedRows& rows, Rows out) {
  const Rows gate = context.workspace.take(rows.rows().count, weights.gate.rows);
  const Rows up = context.workspace.take(rows.rows().count, weights.up.rows);
  const Projection projections[] = {{weights.gate, gate}, {weights.up, up}};
  linear(context, projections, rows);
  context.team.parallel_for(gate.count, [&](size_t i) {
    activation.activate(context.kernels, gate.row(i), up.row(i), gate.width);
  });
  PackedRows inner(context, gate);
  linear(context, weights.down, inner, out);
}

}  // namespace deltafin::model
