#include "model/gated_delta_net.h"

#include "model/delta_rule.h"

namespace deltafin::model {

using checkpoint::QwenConfig;
using checkpoint::TensorRole;
using memory::LayerWeights;
using numerics::Elementary;

namespace {

DeltaRuleShape shape_of(const QwenConfig& config) {
  return {.key_head_count = config.delta_key_head_count,
          .value_head_count = config.delta_value_head_count,
          .key_dim = config.delta_key_head_dim,
          .value_dim = config.delta_value_head_dim,
          .conv_taps = config.conv_taps,
          .decay_per_channel = false};
}

// decay = exp(-(exp(A_log) softplus(a + dt_bias))) and beta = sigmoid(b), one each per value head.
void decay_and_beta(Context& context, const LayerWeights& weights, const DeltaRuleInputs& inputs) {
  const size_t heads = inputs.beta.width;
  std::vector<float> rates(heads);
  context.kernels.elementary(Elementary::Exp, weights.vector(TensorRole::ALog).data(), rates.data(),
                             heads);
  const float* bias = weights.vector(TensorRole::DtBias).data();
  context.team.parallel_for(inputs.decay.count, [&](size_t row) {
    float *decay = inputs.decay.row(row), *beta = inputs.beta.row(row);
    for (size_t head = 0; head < heads; ++head)
      context.kernels.kda_decay(decay + head, bias + head, rates[head], nullptr, decay + head, 1);
    context.kernels.elementary(Elementary::Sigmoid, beta, beta, heads);
  });
}

}  // namespace

state::RecurrentLayout gated_delta_net_state_layout(const QwenConfig& config) {
  return delta_rule_state_layout(shape_of(config));
}

uint64_t gated_delta_net_workspace_per_row(const QwenConfig& config) {
  const DeltaRuleShape shape = shape_of(config);
  // raw, mixed; z, recurrence output, its packed copy; decay and beta.
  return 2 * shape.channel_count() + 3 * shape.value_width() + 2 * shape.value_head_count + 512;
}

void gated_delta_net(Context& context, const QwenConfig& config, const LayerWeights& weights,
                     size_t layer, std::span<const Segment> segments, Rows rows, Rows out) {
  const DeltaRuleShape shape = shape_of(config);
  const auto take = [&](size_t width) { return context.workspace.take(rows.count, width); };
  const DeltaRuleInputs inputs{.raw = take(shape.channel_count()),
                               .mixed = take(shape.channel_count()),
                               .decay = take(shape.value_head_count),
                               .beta = take(shape.value_head_count)};
  const Rows z = take(shape.value_width());
  const Projection projections[] = {
      {weights.matrix(TensorRole::QkvProj), inputs.raw},
      {weights.matrix(TensorRole::ZProj), z},
      {weights.matrix(TensorRole::BetaProj), inputs.beta},
      {weights.matrix(TensorRole::DecayProj), inputs.decay},
  };
  PackedRows packed(context, rows);
  linear(context, projections, packed);
  const float* taps = weights.vector(TensorRole::QkvConv).data();
  const size_t key_taps = shape.key_width() * shape.conv_taps;
  convolve(context, shape, layer, segments, inputs, {taps, taps + key_taps, taps + 2 * key_taps});
  decay_and_beta(context, weights, inputs);

  const Rows mixed = take(shape.value_width());
  delta_rule(context, shape, layer, segments, inputs, mixed);
  // The norm of a head comes first, then its gate.
  gated_head_norm(context, mixed, weights.vector(TensorRole::HeadNorm), config.rms_norm_eps,
                  Elementary::Silu, z);
  PackedRows packed_mixed(context, mixed);
  linear(context, weights.matrix(TensorRole::OProj), packed_mixed, out);
}

void gated_delta_net_replay(Context& context, const QwenConfig& config, size_t layer,
                            state::Transaction& transaction, size_t accepted) {
  delta_rule_replay(context, shape_of(config), layer, transaction, accepted);
}

}  // namespace deltafin::model
