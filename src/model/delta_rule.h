// What Kimi Delta Attention and Gated DeltaNet share: a short convolution over q, k and v, and the
// delta rule, a recurrence over one matrix per value head.
#pragma once

#include <array>
#include <span>

#include "model/linear.h"

namespace deltafin::model {

struct DeltaRuleShape {
  size_t key_head_count = 0;
  size_t value_head_count = 0;  // head h reads key head h / (value heads / key heads)
  size_t key_dim = 0;
  size_t value_dim = 0;
  size_t conv_taps = 0;
  bool decay_per_channel = false;  // one decay per key channel (KDA), else one per value head

  size_t key_width() const { return key_head_count * key_dim; }
  size_t value_width() const { return value_head_count * value_dim; }
  // Channels of q | k | v, in this order.
  size_t channel_count() const { return 2 * key_width() + value_width(); }
  size_t decay_width() const { return value_head_count * (decay_per_channel ? key_dim : 1); }
};

// One row per token. raw holds q | k | v before the convolution (what the convolution window of the
// next pass consists of), mixed holds them after it, q and k normalised.
struct DeltaRuleInputs {
  Rows raw;    // [rows, channel_count]
  Rows mixed;  // [rows, channel_count]
  Rows decay;  // [rows, decay_width], in (0, 1]
  Rows beta;   // [rows, value_head_count]
};

state::RecurrentLayout delta_rule_state_layout(const DeltaRuleShape& shape);

// inputs.mixed from inputs.raw: convolution with SiLU; q and k normalised per head, q also scaled
// by key_dim^-1/2. taps: of q, k and v, [channels, conv_taps] each.
void convolve(Context& context, const DeltaRuleShape& shape, size_t layer,
              std::span<const Segment> segments, const DeltaRuleInputs& inputs,
              const std::array<const float*, 3>& taps);

// out[i], [rows, value_width], token by token. Writes the state after all rows into every segment's
// transaction, and keeps what delta_rule_replay needs where rows may be taken back.
void delta_rule(Context& context, const DeltaRuleShape& shape, size_t layer,
                std::span<const Segment> segments, const DeltaRuleInputs& inputs, Rows out);

// Rewrites the transaction's state of `layer` for its first `accepted` rows.
void delta_rule_replay(Context& context, const DeltaRuleShape& shape, size_t layer,
                       state::Transaction& transaction, size_t accepted);

// rows[i] = RMSNorm(rows[i]) activation(gate[i]), the norm over each head with one weight for all
// of them. `gate` is overwritten.
void gated_head_norm(Context& context, Rows rows, std::span<const float> weight, float epsilon,
                     numerics::Elementary activation, Rows gate);

}  // namespace deltafin::model
