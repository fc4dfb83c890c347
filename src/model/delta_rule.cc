#include "model/delta_rule.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace deltafin::model {

using numerics::DeltaRuleBlock;

namespace {

// The rows of one segment.
DeltaRuleInputs slice(const DeltaRuleInputs& inputs, const Segment& segment) {
  const size_t first = segment.first_row, count = segment.row_count();
  return {inputs.raw.slice(first, count), inputs.mixed.slice(first, count),
          inputs.decay.slice(first, count), inputs.beta.slice(first, count)};
}

// Row `index` of the stream (window | raw rows), where the window holds the rows before the pass.
const float* stream_row(const DeltaRuleShape& shape, const state::RecurrentState& before, Rows raw,
                        size_t index) {
  const size_t window_rows = shape.conv_taps - 1;
  if (index < window_rows) return before.window.data() + index * raw.width;
  return raw.row(index - window_rows);
}

// q, k or v of one row.
void convolve_row(Context& context, const DeltaRuleShape& shape,
                  const state::RecurrentState& before, const DeltaRuleInputs& inputs, size_t row,
                  size_t part, const float* taps) {
  const size_t first = part * shape.key_width();
  const size_t count = part == 2 ? shape.value_width() : shape.key_width();
  std::vector<const float*> sources(shape.conv_taps);
  for (size_t tap = 0; tap < shape.conv_taps; ++tap)
    sources[tap] = stream_row(shape, before, inputs.raw, row + tap) + first;
  float* out = inputs.mixed.row(row) + first;
  context.kernels.short_convolution(sources.data(), taps, shape.conv_taps, out, count);
  if (part == 2) return;  // v is not normalised
  // The factor d^-1/2 sits on q; rounded once from double.
  const float scale = part == 0 ? float(1.0 / std::sqrt(double(shape.key_dim))) : 1.0f;
  for (size_t at = 0; at < count; at += shape.key_dim)
    context.kernels.l2_norm(out + at, scale, out + at, shape.key_dim);
}

// One head's value block over all rows of `inputs`, from `before` to `after`.
void advance_block(Context& context, const DeltaRuleShape& shape, const float* before, float* after,
                   const DeltaRuleInputs& inputs, size_t head, size_t first_value,
                   size_t value_count, const Rows* out) {
  const size_t key_head = head / (shape.value_head_count / shape.key_head_count);
  const size_t matrix = head * shape.key_dim * shape.value_dim;
  const size_t key = key_head * shape.key_dim, value = head * shape.value_dim + first_value;
  // Key-major in a block that stays in L1; one buffer a thread.
  thread_local std::vector<float> scratch;
  scratch.resize(shape.key_dim * value_count);
  DeltaRuleBlock block;
  block.state_in = before + matrix + first_value;
  block.state_out = after + matrix + first_value;
  block.state_stride = shape.value_dim;
  block.key_dim = shape.key_dim;
  block.value_count = value_count;
  block.token_count = inputs.decay.count;
  block.k = inputs.mixed.data + shape.key_width() + key;
  block.v = inputs.mixed.data + 2 * shape.key_width() + value;
  block.decay = inputs.decay.data + (shape.decay_per_channel ? head * shape.key_dim : head);
  block.decay_step = shape.decay_per_channel ? 1 : 0;
  block.beta = inputs.beta.data + head;
  block.beta_stride = inputs.beta.stride;
  block.scratch = scratch.data();
  block.key_stride = inputs.mixed.stride;
  block.decay_stride = inputs.decay.stride;
  block.value_stride = inputs.mixed.stride;
  if (out != nullptr) {
    block.q = inputs.mixed.data + key;
    block.out = out->data + value;
    block.out_stride = out->stride;
  }
  context.kernels.delta_rule(block);
}

// All heads of one segment.
void advance_state(Context& context, const DeltaRuleShape& shape,
                   const state::RecurrentState& before, state::RecurrentState& after,
                   const DeltaRuleInputs& inputs, const Rows* out) {
  // One token reads each state once, in one piece; many keep a narrower block in cache.
  constexpr size_t kWidest = numerics::kDeltaRuleValueBlock;
  const size_t width = inputs.decay.count == 1 ? kWidest : kWidest / 2;
  const size_t blocks = (shape.value_dim + width - 1) / width;
  context.team.parallel_for(shape.value_head_count * blocks, [&](size_t task) {
    const size_t first = task % blocks * width;
    advance_block(context, shape, before.matrix.data(), after.matrix.data(), inputs, task / blocks,
                  first, std::min(width, shape.value_dim - first), out);
  });
  const size_t window_rows = shape.conv_taps - 1, row_bytes = inputs.raw.width * sizeof(float);
  for (size_t i = 0; i < window_rows; ++i)
    std::memcpy(after.window.data() + i * inputs.raw.width,
                stream_row(shape, before, inputs.raw, inputs.raw.count + i), row_bytes);
}

// What delta_rule_replay needs of a row: raw | mixed k, v | decay | beta.
size_t kept_width(const DeltaRuleShape& shape) {
  return 2 * shape.channel_count() - shape.key_width() + shape.decay_width() +
         shape.value_head_count;
}

void keep_inputs(const DeltaRuleShape& shape, size_t layer, state::Transaction& transaction,
                 const DeltaRuleInputs& inputs) {
  float* kept = transaction.keep_inputs(layer, kept_width(shape)).data();
  const auto keep = [&kept](const float* source, size_t count) {
    std::memcpy(kept, source, count * sizeof(float));
    kept += count;
  };
  const size_t queries = shape.key_width();
  for (size_t row = 0; row < inputs.raw.count; ++row) {
    keep(inputs.raw.row(row), inputs.raw.width);
    keep(inputs.mixed.row(row) + queries, inputs.mixed.width - queries);
    keep(inputs.decay.row(row), inputs.decay.width);
    keep(inputs.beta.row(row), inputs.beta.width);
  }
}

}  // namespace

state::RecurrentLayout delta_rule_state_layout(const DeltaRuleShape& shape) {
  return {.window_rows = uint32_t(shape.conv_taps - 1),
          .window_width = uint32_t(shape.channel_count()),
          .matrix_size = uint64_t{shape.value_head_count} * shape.key_dim * shape.value_dim};
}

void convolve(Context& context, const DeltaRuleShape& shape, size_t layer,
              std::span<const Segment> segments, const DeltaRuleInputs& inputs,
              const std::array<const float*, 3>& taps) {
  for (const Segment& segment : segments) {
    const DeltaRuleInputs own = slice(inputs, segment);
    context.team.parallel_for(own.raw.count * 3, [&](size_t task) {
      convolve_row(context, shape, segment.transaction->before(layer), own, task / 3, task % 3,
                   taps[task % 3]);
    });
  }
}

void delta_rule(Context& context, const DeltaRuleShape& shape, size_t layer,
                std::span<const Segment> segments, const DeltaRuleInputs& inputs, Rows out) {
  for (const Segment& segment : segments) {
    state::Transaction& transaction = *segment.transaction;
    const DeltaRuleInputs own = slice(inputs, segment);
    const Rows own_out = out.slice(segment.first_row, segment.row_count());
    advance_state(context, shape, transaction.before(layer), transaction.after(layer), own,
                  &own_out);
    if (transaction.keeps_replay_inputs()) keep_inputs(shape, layer, transaction, own);
  }
}

void delta_rule_replay(Context& context, const DeltaRuleShape& shape, size_t layer,
                       state::Transaction& transaction, size_t accepted) {
  const size_t channels = shape.channel_count(), stride = kept_width(shape);
  // Read-only from here on; the kernels' block type is shared with the writing path.
  float* kept = const_cast<float*>(transaction.kept_inputs(layer).data());
  DeltaRuleInputs inputs;
  inputs.raw = {kept, accepted, channels, stride};
  // advance_block looks for k behind the width of q, so `mixed` starts that much early.
  inputs.mixed = {kept + channels - shape.key_width(), accepted, channels, stride};
  float* decay = kept + 2 * channels - shape.key_width();
  inputs.decay = {decay, accepted, shape.decay_width(), stride};
  inputs.beta = {decay + shape.decay_width(), accepted, shape.value_head_count, stride};
  advance_state(context, shape, transaction.before(layer), transaction.after(layer), inputs,
                nullptr);
}

void gated_head_norm(Context& context, Rows rows, std::span<const float> weight, float epsilon,
                     numerics::Elementary activation, Rows gate) {
  context.team.parallel_for(rows.count, [&](size_t i) {
    float *o = rows.row(i), *g = gate.row(i);
    context.kernels.elementary(activation, g, g, rows.width);
    for (size_t at = 0; at < rows.width; at += weight.size())
      context.kernels.rms_norm_gated(o + at, weight.data(), epsilon, g + at, o + at, weight.size());
  });
}

}  // namespace deltafin::model
