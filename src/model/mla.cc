#include "model/mla.h"

#include <cmath>
#include <cstring>

#include "base/floats.h"
#include "model/attention.h"

namespace deltafin::model {

using checkpoint::KimiConfig;
using checkpoint::TensorRole;
using memory::LayerWeights;
using numerics::WeightMatrix;

namespace {

// Normalises the latent, leaves the extra channels as they are, and appends both to the caches.
void append_cache_rows(Context& context, const KimiConfig& config, const LayerWeights& weights,
                       size_t layer, std::span<const Segment> segments, Rows compressed) {
  const float* norm = weights.vector(TensorRole::KvANorm).data();
  const size_t rank = config.kv_lora_rank;
  for (const Segment& segment : segments) {
    state::Transaction& transaction = *segment.transaction;
    for (size_t i = 0; i < segment.row_count(); ++i) {
      const float* source = compressed.row(segment.first_row + i);
      float* cached = transaction.cache_row(layer, transaction.base() + i);
      context.kernels.rms_norm(source, norm, numerics::NormWeight::Plain, kLowRankNormEpsilon,
                               cached, rank);
      std::memcpy(cached + rank, source + rank, config.qk_rope_head_dim * sizeof(float));
    }
  }
}

struct Head {
  WeightMatrix key;    // W_k [nope, rank]
  WeightMatrix value;  // W_v [v, rank]
};

Head head_weights(const KimiConfig& config, const LayerWeights& weights, size_t head) {
  const WeightMatrix& kv_b = weights.matrix(TensorRole::KvB);
  const size_t first = head * (config.qk_nope_head_dim + config.v_head_dim);
  return {kv_b.row_range(first, config.qk_nope_head_dim),
          kv_b.row_range(first + config.qk_nope_head_dim, config.v_head_dim)};
}

CacheColumns cache_columns(const KimiConfig& config) {
  const size_t width = config.kv_lora_rank + config.qk_rope_head_dim;
  return {.row_width = width,
          .first_key = 0,
          .key_dim = width,
          .first_value = 0,
          .value_dim = config.kv_lora_rank};
}

// o = W_v attend(W_k^T q_nope | q_extra) for every query of the block.
void run_block(Context& context, const KimiConfig& config, const LayerWeights& weights,
               size_t layer, const Segment& segment, const QueryBlock& block, Rows queries,
               Rows out) {
  thread_local QueryScratch scratch;
  thread_local Floats packed;
  const CacheColumns columns = cache_columns(config);
  const size_t rank = config.kv_lora_rank, nope = config.qk_nope_head_dim;
  const size_t extra = config.qk_rope_head_dim, width = columns.key_dim;
  const size_t packed_stride = numerics::packed_size(rank);
  scratch.fit(columns);
  packed.at_least(kQueryRows * packed_stride);
  const size_t row = segment.first_row + block.first_row, stride = block.head_count * width;
  for (size_t i = 0; i < block.head_count; ++i) {
    const size_t head = block.first_head + i;
    const float* query = queries.row(row) + head * (nope + extra);
    float* absorbed = scratch.queries.data() + i * width;
    context.kernels.product_transposed(head_weights(config, weights, head).key, query,
                                       queries.stride, block.row_count, absorbed, stride);
    for (size_t r = 0; r < block.row_count; ++r)
      std::memcpy(absorbed + r * stride + rank, query + r * queries.stride + nope,
                  extra * sizeof(float));
  }
  const float scale = float(1.0 / std::sqrt(double(nope + extra)));
  attend(context.kernels, *segment.transaction, layer, columns, scale, block, scratch);
  for (size_t i = 0; i < block.head_count; ++i) {
    const size_t head = block.first_head + i;
    const WeightMatrix value = head_weights(config, weights, head).value;
    for (size_t r = 0; r < block.row_count; ++r)
      context.kernels.pack_column(value.format,
                                  scratch.attended.data() + (r * block.head_count + i) * rank, rank,
                                  packed.data() + r * packed_stride);
    context.kernels.product(value, packed.data(), packed_stride, block.row_count,
                            out.row(row) + head * config.v_head_dim, out.stride);
  }
}

}  // namespace

state::PagedLayout mla_state_layout(const KimiConfig& config) {
  return {.row_width = config.kv_lora_rank + config.qk_rope_head_dim};
}

uint64_t mla_workspace_per_row(const KimiConfig& config) {
  const uint64_t heads = config.mla_head_count;
  return heads * (config.qk_nope_head_dim + config.qk_rope_head_dim + 3 * config.v_head_dim) +
         3 * uint64_t{config.q_lora_rank.value_or(0)} + config.kv_lora_rank +
         config.qk_rope_head_dim + 512;
}

void mla(Context& context, const KimiConfig& config, const LayerWeights& weights, size_t layer,
         std::span<const Segment> segments, Rows rows, Rows out) {
  PackedRows packed(context, rows);
  const auto take = [&](size_t width) { return context.workspace.take(rows.count, width); };
  const size_t heads = config.mla_head_count, value_width = heads * config.v_head_dim;
  const Rows queries = take(heads * (config.qk_nope_head_dim + config.qk_rope_head_dim));
  const Rows low = take(config.q_lora_rank.value_or(0));
  const Rows compressed = take(cache_columns(config).row_width);
  const Rows gate = take(config.mla_output_gate ? value_width : 0);
  std::vector<Projection> projections = {
      config.q_lora_rank ? Projection{weights.matrix(TensorRole::QueryA), low}
                         : Projection{weights.matrix(TensorRole::QProj), queries},
      {weights.matrix(TensorRole::KvA), compressed},
  };
  if (config.mla_output_gate) projections.push_back({weights.matrix(TensorRole::GProj), gate});
  linear(context, projections, packed);
  if (config.q_lora_rank) {
    rms_norm(context, low, {weights.vector(TensorRole::QueryANorm), kLowRankNormEpsilon}, low);
    PackedRows packed_low(context, low);
    linear(context, weights.matrix(TensorRole::QueryB), packed_low, queries);
  }
  append_cache_rows(context, config, weights, layer, segments, compressed);

  const Rows attended = take(value_width);
  for (const Segment& segment : segments) {
    const QueryBlocks blocks(segment.row_count(), 1, heads, context.team.size());
    context.team.parallel_for(blocks.size(), [&](size_t task) {
      if (context.cancel.cancelled()) return;
      run_block(context, config, weights, layer, segment, blocks[task], queries, attended);
    });
  }
  if (config.mla_output_gate)
    context.team.parallel_for(rows.count, [&](size_t i) {
      context.kernels.sigmoid_gate(attended.row(i), gate.row(i), attended.row(i), attended.width);
    });
  PackedRows packed_attended(context, attended);
  linear(context, weights.matrix(TensorRole::OProj), packed_attended, out);
}

}  // namespace deltafin::model
