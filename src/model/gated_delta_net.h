// Gated DeltaNet: a short convolution, one decay a head and the delta rule; value heads come in
// groups that share a key head.
#pragma once

#include "checkpoint/contract.h"
#include "model/linear.h"

namespace deltafin::model {

state::RecurrentLayout gated_delta_net_state_layout(const checkpoint::QwenConfig& config);

// out[i] = GatedDeltaNet(rows[i]); rows are normed layer inputs, out.width == hidden size. Writes
// the state after all rows into every segment's transaction.
void gated_delta_net(Context& context, const checkpoint::QwenConfig& config,
                     const memory::LayerWeights& weights, size_t layer,
                     std::span<const Segment> segments, Rows rows, Rows out);

// Rewrites the transaction's state of `layer` for its first `accepted` rows.
void gated_delta_net_replay(Context& context, const checkpoint::QwenConfig& config, size_t layer,
                            state::Transaction& transaction, size_t accepted);

// Floats of scratch a row of gated_delta_net() needs at most.
uint64_t gated_delta_net_workspace_per_row(const checkpoint::QwenConfig& config);

}  // namespace deltafin::model
