#include "model/kda.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace deltafin::model {

using checkpoint::KimiConfig;
using checkpoint::TensorRole;
using memory::LayerWeights;
using numerics::DeltaRuleBlock;
using numerics::Elementary;

namespace {

// The inputs of the recurrence, one row per token. raw holds q, k, v before the convolution (what
// the convolution window of the next pass consists of), mixed holds them after it; q and k
// normalised.
struct KdaInputs {
  Rows raw;    // [rows, 3P]
  Rows mixed;  // [rows, 3P]
  Rows decay;  // [rows, P]
  Rows beta;   // [rows, heads]
  Rows gate;   // [rows, P], before its sigmoid

  KdaInputs slice(size_t first, size_t count) const {
    return {raw.slice(first, count), mixed.slice(first, count), decay.slice(first, count),
            beta.slice(first, count), gate.slice(first, count)};
  }
};

size_t projection_width(const KimiConfig& c) { return size_t{c.kda_head_count} * c.kda_head_dim; }

KdaInputs project(Context& context, const KimiConfig& config, const LayerWeights& weights,
                  PackedRows& rows) {
  const size_t width = projection_width(config), count = rows.rows().count;
  KdaInputs inputs;
  inputs.raw = context.workspace.take(count, 3 * width);
  linear(context, weights.matrix(TensorRole::QProj), rows, inputs.raw.columns(0, width));
  linear(context, weights.matrix(TensorRole::KProj), rows, inputs.raw.columns(width, width));
  linear(context, weights.matrix(TensorRole::VProj), rows, inputs.raw.columns(2 * width, width));
  inputs.mixed = context.workspace.take(count, 3 * width);
  inputs.decay = linear(context, weights.matrix(TensorRole::DecayB),
                        linear(context, weights.matrix(TensorRole::DecayA), rows));
  inputs.beta = linear(context, weights.matrix(TensorRole::BetaProj), rows);
  inputs.gate = config.kda_full_rank_gate
                    ? linear(context, weights.matrix(TensorRole::GProj), rows)
                    : linear(context, weights.matrix(TensorRole::GateB),
                             linear(context, weights.matrix(TensorRole::GateA), rows));
  return inputs;
}

// Row `index` of the stream (window | raw rows), where the window holds the rows before the pass.
const float* stream_row(const KimiConfig& config, const state::RecurrentState& before, Rows raw,
                        size_t index) {
  const size_t window_rows = config.conv_taps - 1;
  if (index < window_rows) return before.window.data() + index * raw.width;
  return raw.row(index - window_rows);
}

// q, k or v of one row: convolution with SiLU; q and k are then normalised per head.
void mix_row(Context& context, const KimiConfig& config, const LayerWeights& weights,
             const state::RecurrentState& before, const KdaInputs& inputs, size_t row,
             size_t part) {
  constexpr TensorRole kTaps[] = {TensorRole::QConv, TensorRole::KConv, TensorRole::VConv};
  const size_t width = projection_width(config), head_dim = config.kda_head_dim;
  const size_t taps = config.conv_taps;
  std::vector<const float*> sources(taps);
  for (size_t tap = 0; tap < taps; ++tap)
    sources[tap] = stream_row(config, before, inputs.raw, row + tap) + part * width;
  float* out = inputs.mixed.row(row) + part * width;
  context.kernels.short_convolution(sources.data(), weights.vector(kTaps[part]).data(), taps, out,
                                    width);
  if (part == 2) return;  // v is not normalised
  // The factor d^-1/2 sits on q; rounded once from double.
  const float scale = part == 0 ? float(1.0 / std::sqrt(double(head_dim))) : 1.0f;
  for (size_t head = 0; head < config.kda_head_count; ++head)
    context.kernels.l2_norm(out + head * head_dim, scale, out + head * head_dim, head_dim);
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
                    const KdaInputs& inputs) {
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

// One head's value block over all rows of `inputs`, from `before` to `after`.
void advance_block(Context& context, const KimiConfig& config, const float* before, float* after,
                   const KdaInputs& inputs, size_t head, size_t first_value, size_t value_count,
                   const Rows* out) {
  const size_t head_dim = config.kda_head_dim, width = projection_width(config);
  const size_t matrix = head * head_dim * head_dim, channel = head * head_dim;
  // Key-major in a block that stays in L1; one buffer a thread.
  thread_local std::vector<float> scratch;
  scratch.resize(head_dim * value_count);
  DeltaRuleBlock block;
  block.state_in = before + matrix + first_value;
  block.state_out = after + matrix + first_value;
  block.state_stride = head_dim;
  block.key_dim = head_dim;
  block.value_count = value_count;
  block.token_count = inputs.decay.count;
  block.k = inputs.mixed.data + width + channel;
  block.v = inputs.mixed.data + 2 * width + channel + first_value;
  block.decay = inputs.decay.data + channel;
  block.beta = inputs.beta.data + head;
  block.beta_stride = inputs.beta.stride;
  block.scratch = scratch.data();
  block.key_stride = inputs.mixed.stride;
  block.decay_stride = inputs.decay.stride;
  block.value_stride = inputs.mixed.stride;
  if (out != nullptr) {
    block.q = inputs.mixed.data + channel;
    block.out = out->data + channel + first_value;
    block.out_stride = out->stride;
  }
  context.kernels.delta_rule(block);
}

// All heads of one segment.
void advance_state(Context& context, const KimiConfig& config, const state::RecurrentState& before,
                   state::RecurrentState& after, const KdaInputs& inputs, const Rows* out) {
  const size_t head_dim = config.kda_head_dim;
  // One token reads each state once, in one piece; many keep a narrower block in cache.
  constexpr size_t kWidest = numerics::kDeltaRuleValueBlock;
  const size_t width = inputs.decay.count == 1 ? kWidest : kWidest / 2;
  const size_t blocks = (head_dim + width - 1) / width;
  context.team.parallel_for(config.kda_head_count * blocks, [&](size_t task) {
    const size_t first = task % blocks * width;
    advance_block(context, config, before.matrix.data(), after.matrix.data(), inputs, task / blocks,
                  first, std::min(width, head_dim - first), out);
  });
  const size_t window_rows = config.conv_taps - 1, row_bytes = inputs.raw.width * sizeof(float);
  for (size_t i = 0; i < window_rows; ++i)
    std::memcpy(after.window.data() + i * inputs.raw.width,
                stream_row(config, before, inputs.raw, inputs.raw.count + i), row_bytes);
}

// What kda_replay needs of a row: raw | mixed k, v | decay | beta.
size_t kept_width(const KimiConfig& config) {
  return 6 * projection_width(config) + config.kda_head_count;
}

void keep_inputs(const KimiConfig& config, size_t layer, state::Transaction& transaction,
                 const KdaInputs& inputs) {
  const size_t width = projection_width(config);
  float* kept = transaction.keep_inputs(layer, kept_width(config)).data();
  const auto keep = [&kept](const float* source, size_t count) {
    std::memcpy(kept, source, count * sizeof(float));
    kept += count;
  };
  for (size_t row = 0; row < inputs.raw.count; ++row) {
    keep(inputs.raw.row(row), 3 * width);
    keep(inputs.mixed.row(row) + width, 2 * width);
    keep(inputs.decay.row(row), width);
    keep(inputs.beta.row(row), config.kda_head_count);
  }
}

}  // namespace

state::RecurrentLayout kda_state_layout(const KimiConfig& config) {
  const uint64_t head_dim = config.kda_head_dim;
  return {.window_rows = config.conv_taps - 1,
          .window_width = uint32_t(3 * projection_width(config)),
          .matrix_size = config.kda_head_count * head_dim * head_dim};
}

uint64_t kda_workspace_per_row(const KimiConfig& config) {
  // raw, mixed, decay, gate, recurrence output, its packed copy; the bottlenecks of decay and gate.
  return 10 * projection_width(config) + 4 * config.kda_head_dim + config.kda_head_count + 512;
}

void kda(Context& context, const KimiConfig& config, const LayerWeights& weights, size_t layer,
         std::span<const Segment> segments, Rows rows, Rows out) {
  PackedRows packed(context, rows);
  const KdaInputs inputs = project(context, config, weights, packed);
  for (const Segment& segment : segments) {
    const KdaInputs own = inputs.slice(segment.first_row, segment.row_count());
    context.team.parallel_for(own.raw.count * 3, [&](size_t task) {
      mix_row(context, config, weights, segment.transaction->before(layer), own, task / 3,
              task % 3);
    });
  }
  decay_and_beta(context, config, weights, inputs);

  const Rows mixed = context.workspace.take(rows.count, projection_width(config));
  for (const Segment& segment : segments) {
    state::Transaction& transaction = *segment.transaction;
    const KdaInputs own = inputs.slice(segment.first_row, segment.row_count());
    const Rows own_out = mixed.slice(segment.first_row, segment.row_count());
    advance_state(context, config, transaction.before(layer), transaction.after(layer), own,
                  &own_out);
    if (transaction.keeps_replay_inputs()) keep_inputs(config, layer, transaction, own);
  }

  const float* head_norm = weights.vector(TensorRole::HeadNorm).data();
  const size_t head_dim = config.kda_head_dim;
  context.team.parallel_for(rows.count, [&](size_t row) {
    float* gate = inputs.gate.row(row);
    float* o = mixed.row(row);
    context.kernels.elementary(Elementary::Sigmoid, gate, gate, mixed.width);
    for (size_t at = 0; at < mixed.width; at += head_dim)
      context.kernels.rms_norm_gated(o + at, head_norm, config.rms_norm_eps, gate + at, o + at,
                                     head_dim);
  });
  PackedRows packed_mixed(context, mixed);
  linear(context, weights.matrix(TensorRole::OProj), packed_mixed, out);
}

void kda_replay(Context& context, const KimiConfig& config, size_t layer,
                state::Transaction& transaction, size_t accepted) {
  const size_t width = projection_width(config), stride = kept_width(config);
  // Read-only from here on; the kernels' block type is shared with the writing path.
  float* kept = const_cast<float*>(transaction.kept_inputs(layer).data());
  KdaInputs inputs;
  inputs.raw = {kept, accepted, 3 * width, stride};
  // advance_block looks for k and v at columns width and 2 width of `mixed`, so it starts one width
  // early.
  inputs.mixed = {kept + 2 * width, accepted, 3 * width, stride};
  inputs.decay = {kept + 5 * width, accepted, width, stride};
  inputs.beta = {kept + 6 * width, accepted, config.kda_head_count, stride};
  advance_state(context, config, transaction.before(layer), transaction.after(layer), inputs,
                nullptr);
}

}  // namespace deltafin::model
