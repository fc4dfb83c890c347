#include "model/grouped_query_attention.h"

#include <cmath>
#include <cstring>

#include "numerics/rope.h"

namespace deltafin::model {

using checkpoint::QwenConfig;
using checkpoint::TensorRole;
using memory::LayerWeights;
using numerics::NormWeight;

namespace {

// Floats from one head's query to the next one's: with an output gate, each query is followed by
// its gate.
size_t query_stride(const QwenConfig& config) {
  return size_t{config.head_dim} * (config.attention_gate ? 2 : 1);
}

size_t key_width(const QwenConfig& config) {
  return size_t{config.kv_head_count} * config.head_dim;
}

CacheColumns cache_columns(const QwenConfig& config, size_t kv_head) {
  const size_t width = key_width(config), first = kv_head * config.head_dim;
  return {.row_width = 2 * width,
          .first_key = first,
          .key_dim = config.head_dim,
          .first_value = width + first,
          .value_dim = config.head_dim};
}

}  // namespace

state::PagedLayout grouped_query_state_layout(const QwenConfig& config) {
  return {.row_width = uint32_t(2 * key_width(config))};
}

GroupedQueryAttention::GroupedQueryAttention(const QwenConfig& config)
    : config_(config), inverse_frequencies_(config.rotary_dim / 2) {
  numerics::rope_inverse_frequencies(config.rope_theta, inverse_frequencies_);
}

uint64_t GroupedQueryAttention::workspace_per_row() const {
  // queries, keys, values; the attended values and their packed copy.
  return config_.head_count * (query_stride(config_) + 2 * config_.head_dim) +
         2 * key_width(config_) + 512;
}

// One row's queries and keys: norm, then rotation of the first rotary_dim dimensions; key and value
// go into the cache.
void GroupedQueryAttention::rotate_row(const Context& context, const LayerWeights& weights,
                                       size_t layer, const Segment& segment, size_t row,
                                       const Projected& projected) const {
  const size_t head_dim = config_.head_dim, rotary = config_.rotary_dim;
  state::Transaction& transaction = *segment.transaction;
  const uint64_t position = transaction.base() + row;
  thread_local std::vector<float> sines, cosines;
  sines.resize(rotary / 2);
  cosines.resize(rotary / 2);
  numerics::rope_angles(position, inverse_frequencies_, sines, cosines);
  const NormWeight kind = config_.zero_centred_norms ? NormWeight::ZeroCentred : NormWeight::Plain;
  const auto norm_and_rotate = [&](TensorRole norm, const float* from, float* to) {
    context.kernels.rms_norm(from, weights.vector(norm).data(), kind, config_.rms_norm_eps, to,
                             head_dim);
    context.kernels.rotate(to, sines.data(), cosines.data(), to, rotary);
  };
  float* query = projected.queries.row(segment.first_row + row);
  for (size_t head = 0; head < config_.head_count; ++head, query += query_stride(config_))
    norm_and_rotate(TensorRole::QNorm, query, query);
  float* cached = transaction.cache_row(layer, position);
  for (size_t at = 0; at < key_width(config_); at += head_dim)
    norm_and_rotate(TensorRole::KNorm, projected.keys.row(segment.first_row + row) + at,
                    cached + at);
  std::memcpy(cached + key_width(config_), projected.values.row(segment.first_row + row),
              key_width(config_) * sizeof(float));
}

void GroupedQueryAttention::run_block(const Context& context, size_t layer, const Segment& segment,
                                      const QueryBlock& block, const Projected& projected,
                                      Rows out) const {
  thread_local QueryScratch scratch;
  const size_t head_dim = config_.head_dim, stride = query_stride(config_);
  const size_t group = block.first_head / (config_.head_count / config_.kv_head_count);
  const CacheColumns columns = cache_columns(config_, group);
  scratch.fit(columns);
  const auto query_of = [&](size_t row, size_t head) {
    return projected.queries.row(segment.first_row + block.first_row + row) +
           (block.first_head + head) * stride;
  };
  for (size_t row = 0; row < block.row_count; ++row)
    for (size_t head = 0; head < block.head_count; ++head)
      std::memcpy(scratch.queries.data() + (row * block.head_count + head) * head_dim,
                  query_of(row, head), head_dim * sizeof(float));
  const float scale = float(1.0 / std::sqrt(double(head_dim)));
  attend(context.kernels, *segment.transaction, layer, columns, scale, block, scratch);
  for (size_t row = 0; row < block.row_count; ++row) {
    float* to = out.row(segment.first_row + block.first_row + row) + block.first_head * head_dim;
    for (size_t head = 0; head < block.head_count; ++head, to += head_dim) {
      const float* from = scratch.attended.data() + (row * block.head_count + head) * head_dim;
      if (config_.attention_gate) {
        context.kernels.sigmoid_gate(from, query_of(row, head) + head_dim, to, head_dim);
      } else {
        std::memcpy(to, from, head_dim * sizeof(float));
      }
    }
  }
}

void GroupedQueryAttention::run(Context& context, const LayerWeights& weights, size_t layer,
                                std::span<const Segment> segments, Rows rows, Rows out) const {
  const auto take = [&](size_t width) { return context.workspace.take(rows.count, width); };
  const Projected projected{.queries = take(config_.head_count * query_stride(config_)),
                            .keys = take(key_width(config_)),
                            .values = take(key_width(config_))};
  const Projection projections[] = {{weights.matrix(TensorRole::QProj), projected.queries},
                                    {weights.matrix(TensorRole::KProj), projected.keys},
                                    {weights.matrix(TensorRole::VProj), projected.values}};
  PackedRows packed(context, rows);
  linear(context, projections, packed);

  const Rows attended = take(size_t{config_.head_count} * config_.head_dim);
  for (const Segment& segment : segments) {
    context.team.parallel_for(segment.row_count(), [&](size_t row) {
      rotate_row(context, weights, layer, segment, row, projected);
    });
    const QueryBlocks blocks(segment.row_count(), config_.kv_head_count,
                             config_.head_count / config_.kv_head_count, context.team.size());
    context.team.parallel_for(blocks.size(), [&](size_t task) {
      if (context.cancel.cancelled()) return;
      run_block(context, layer, segment, blocks[task], projected, attended);
    });
  }
  PackedRows packed_attended(context, attended);
  linear(context, weights.matrix(TensorRole::OProj), packed_attended, out);
}

}  // namespace deltafin::model
