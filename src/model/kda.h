// Kimi Delta Attention: a short convolution, a per-channel decay and the delta rule.
#pragma once

#include "checkpoint/contract.h"
#include "model/linear.h"

namespace deltafin::model {

state::RecurrentLayout kda_state_layout(const checkpoint::KimiConfig& config);

// out[i] = KDA(rows[i]); rows are normed layer inputs, out.width == hidden size. Writes the state
// after all rows into every segment's transaction.
void kda(Context& context, const checkpoint::KimiConfig& config,
         const memory::LayerWeights& weights, size_t layer, std::span<const Segment> segments,
         Rows rows, Rows out);

// Rewrites the transaction's state of `layer` for its first `accepted` rows.
void kda_replay(Context& context, const checkpoint::KimiConfig& config, size_t layer,
                state::Transaction& transaction, size_t accepted);

// Floats of scratch a row of kda() needs at most.
uint64_t kda_workspace_per_row(const checkpoint::KimiConfig& config);

}  // namespace deltafin::model
