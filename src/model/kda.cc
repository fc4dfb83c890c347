#include "model/kda.h"

#include "model/delta_rule.h"

namespace deltafin::model {

using checkpoint::KimiConfig;
using checkpoint::TensorRole;
using memory::LayerWeights;
using numerics::Elementary;

namespace {

DeltaRuleShape shape_of(const KimiConfig& config) {
  return {.key_head_count = config.kda_head_count,
          .value_head_count = config.kda_head_count,
          .key_dim = config.kda_head_dim,
          .value_dim = config.kda_head_dim,
          .conv_taps = config.conv_taps,
          .decay_per_channel = true};
}

// Projects the rows; returns the gate [rows, width], before its sigmoid.
Rows project(Context& context, const KimiConfig& config, const LayerWeights& weights,
             PackedRows& rows, DeltaRuleInputs& inputs) {
  const DeltaRuleShape shape = shape_of(config);
  const size_t width = shape.key_width(), count = rows.rows().count;
  const auto take = [&](size_t columns) { return context.workspace.take(count, columns); };
  inputs.raw = take(3 * width);
  inputs.mixed = take(3 * width);
  inputs.decay = take(width);
  inputs.beta = take(config.kda_head_count);
  const Rows gate = take(width);
  const Rows low_decay = take(config.kda_head_dim), low_gate = take(config.kda_head_dim);
  const auto of = [&](TensorRole role) -> const numerics::WeightMatrix& {
    return weights.matrix(role);
  };
  const Projection projections[] = {
      {of(TensorRole::QProj), inputs.raw.columns(0, width)},
      {of(TensorRole::KProj), inputs.raw.columns(width, width)},
      {of(TensorRole::VProj), inputs.raw.columns(2 * width, width)},
      {of(TensorRole::DecayA), low_decay},
      {of(TensorRole::BetaProj), inputs.beta},
      config.kda_full_rank_gate ? Projection{of(TensorRole::GProj), gate}
                                : Projection{of(TensorRole::GateA), low_gate},
  };
  linear(context, projections, rows);
  PackedRows packed_decay(context, low_decay);
  linear(context, of(TensorRole::DecayB), packed_decay, inputs.decay);
  if (!config.kda_full_rank_gate) {
    PackedRows packed_gate(context, low_gate);
    linear(context, of(TensorRole::GateB), packed_gate, gate);
  }
  return gate;
}

// A_log has one entry per *head*; what a checkpoint stores behind the first head_count entries is
// padding (K3 ships 128 entries for 96 heads). Source: running fla's KDA on the released weights.
std::vector<float> decay_rates(Context& context, const KimiConfig& config,
                               const LayerWeights& weights) {
  std::vector<float> rates(config.kda_head_count);
  context.kernels.elementary(Elementary::Exp, weights.vector(TensorRole::ALog).data(), rates.data(),
                             rates.size());
  return rates;
}

void decay_and_beta(Context& context, const KimiConfig& config, const LayerWeights& weights,
                    const DeltaRuleInputs& inputs) {
  const size_t head_dim = config.kda_head_dim;
  const std::vector<float> rates = decay_rates(context, config, weights);
  const float* bias = weights.vector(TensorRole::DtBias).data();
  const float* bound = config.kda_gate_lower_bound ? &*config.kda_gate_lower_bound : nullptr;
  context.team.parallel_for(inputs.decay.count, [&](size_t row) {
    for (size_t head = 0; head < config.kda_head_count; ++head) {
      float* decay = inputs.decay.row(row) + head * head_dim;
      context.kernels.kda_decay(decay, bias + head * head_dim, rates[head], bound, decay, head_dim);
    }
    context.kernels.elementary(Elementary::Sigmoid, inputs.beta.row(row), inputs.beta.row(row),
                               inputs.beta.width);
  });
}

}  // namespace

state::RecurrentLayout kda_state_layout(const KimiConfig& config) {
  return delta_rule_state_layout(shape_of(config));
}

uint64_t kda_workspace_per_row(const KimiConfig& config) {
  // raw, mixed, decay, gate, recurrence output, its packed copy; the bottlenecks of decay and gate.
  return 10 * shape_of(config).key_width() + 4 * config.kda_head_dim + config.kda_head_count + 512;
}

void kda(Context& context, const KimiConfig& config, const LayerWeights& weights, size_t layer,
         std::span<const Segment> segments, Rows rows, Rows out) {
  const DeltaRuleShape shape = shape_of(config);
  PackedRows packed(context, rows);
  DeltaRuleInputs inputs;
  const Rows gate = project(context, config, weights, packed, inputs);
  convolve(context, shape, layer, segments, inputs,
           {weights.vector(TensorRole::QConv).data(), weights.vector(TensorRole::KConv).data(),
            weights.vector(TensorRole::VConv).data()});
  decay_and_beta(context, config, weights, inputs);

  const Rows mixed = context.workspace.take(rows.count, shape.value_width());
  delta_rule(context, shape, layer, segments, inputs, mixed);
  gated_head_norm(context, mixed, weights.vector(TensorRole::HeadNorm), config.rms_norm_eps,
                  Elementary::Sigmoid, gate);
  PackedRows packed_mixed(context, mixed);
  linear(context, weights.matrix(TensorRole::OProj), packed_mixed, out);
}

void kda_replay(Context& context, const KimiConfig& config, size_t layer,
                state::Transaction& transaction, size_t accepted) {
  delta_rule_replay(context, shape_of(config), layer, transaction, accepted);
}

}  // namespace deltafin::model
