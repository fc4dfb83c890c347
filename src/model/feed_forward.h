// Gated feed-forward: down(act(gate x, up x)). Dense layers and shared experts.
#pragma once

#include "checkpoint/contract.h"
#include "memory/expert_store.h"
#include "model/linear.h"

namespace deltafin::model {

struct FeedForwardWeights {
  const numerics::WeightMatrix& gate;
  const numerics::WeightMatrix& up;
  const numerics::WeightMatrix& down;
};

// out.width == down.rows.
void feed_forward(Context& context, const FeedForwardWeights& weights,
                  const memory::ExpertFunction& activation, PackedRows& rows, Rows out);

}  // namespace deltafin::model
