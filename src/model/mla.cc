#include "model/mla.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace deltafin::model {

using checkpoint::KimiConfig;
using checkpoint::TensorRole;
using memory::LayerWeights;
using numerics::AttentionChunk;
using numerics::AttentionPartial;
using numerics::kAttentionChunk;
using numerics::WeightMatrix;

static_assert(state::kPagePositions == kAttentionChunk, "a page is a chunk of attention");

namespace {

// Rows of one segment that a task takes for one head: the head's W_k and W_v are read once for
// them.
constexpr size_t kRowBlock = 8;

Rows project_queries(Context& context, const KimiConfig& config, const LayerWeights& weights,
                     PackedRows& rows) {
  if (!config.q_lora_rank) return linear(context, weights.matrix(TensorRole::QProj), rows);
  const Rows low = linear(context, weights.matrix(TensorRole::QueryA), rows);
  rms_norm(context, low, weights.vector(TensorRole::QueryANorm), kLowRankNormEpsilon, low);
  return linear(context, weights.matrix(TensorRole::QueryB), low);
}

// Normalises the latent, leaves the extra channels as they are, and appends both to the caches.
void append_cache_rows(Context& context, const KimiConfig& config, const LayerWeights& weights,
                       size_t layer, std::span<const Segment> segments, PackedRows& rows) {
  const Rows compressed = linear(context, weights.matrix(TensorRole::KvA), rows);
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

// Buffers of one thread.
struct HeadScratch {
  std::vector<float> query, scores, running, next, latent, packed;

  void fit(const KimiConfig& config) {
    const size_t rank = config.kv_lora_rank;
    query.resize(rank + config.qk_rope_head_dim);
    scores.resize(kAttentionChunk);
    running.resize(rank);
    next.resize(rank);
    latent.resize(rank);
    packed.resize(kRowBlock * numerics::packed_size(rank));
  }
};

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

// softmax(q' . cache * scale) over positions [0, position], of the latent part: -> out [rank].
void attend(Context& context, const KimiConfig& config, const state::Transaction& transaction,
            size_t layer, uint64_t position, HeadScratch& scratch, float* out) {
  const size_t rank = config.kv_lora_rank, width = rank + config.qk_rope_head_dim;
  AttentionChunk chunk;
  chunk.query = scratch.query.data();
  chunk.key_stride = chunk.key_dim = chunk.value_stride = width;
  chunk.value_dim = rank;
  chunk.scale = float(1.0 / std::sqrt(double(config.qk_nope_head_dim + config.qk_rope_head_dim)));
  AttentionPartial running{.sum = scratch.running.data()}, next{.sum = scratch.next.data()};
  for (uint64_t first = 0; first <= position; first += kAttentionChunk) {
    chunk.keys = chunk.values = transaction.cache_page(layer, first / kAttentionChunk);
    chunk.position_count = std::min<uint64_t>(kAttentionChunk, position + 1 - first);
    context.kernels.attention_chunk(chunk, scratch.scores.data(), first == 0 ? running : next);
    if (first > 0) context.kernels.attention_fold(running, next, rank);
  }
  context.kernels.attention_finish(running, out, rank);
}

// One head over rows [first, first + count) of a segment: o = W_v attend(W_k^T q_nope | q_extra).
void run_head(Context& context, const KimiConfig& config, const LayerWeights& weights, size_t layer,
              const Segment& segment, size_t head, size_t first, size_t count, Rows queries,
              Rows out) {
  thread_local HeadScratch scratch;
  scratch.fit(config);
  const Head own = head_weights(config, weights, head);
  const size_t rank = config.kv_lora_rank, nope = config.qk_nope_head_dim;
  const size_t query_width = nope + config.qk_rope_head_dim;
  const size_t packed_stride = numerics::packed_size(rank);
  for (size_t i = 0; i < count; ++i) {
    const float* query = queries.row(segment.first_row + first + i) + head * query_width;
    context.kernels.product_transposed(own.key, query, scratch.query.data());
    std::memcpy(scratch.query.data() + rank, query + nope, config.qk_rope_head_dim * sizeof(float));
    attend(context, config, *segment.transaction, layer, segment.transaction->base() + first + i,
           scratch, scratch.latent.data());
    context.kernels.pack_column(own.value.format, scratch.latent.data(), rank,
                                scratch.packed.data() + i * packed_stride);
  }
  context.kernels.product(own.value, scratch.packed.data(), packed_stride, count,
                          out.row(segment.first_row + first) + head * config.v_head_dim,
                          out.stride);
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
  const Rows queries = project_queries(context, config, weights, packed);
  append_cache_rows(context, config, weights, layer, segments, packed);

  const size_t heads = config.mla_head_count;
  const Rows attended = context.workspace.take(rows.count, heads * config.v_head_dim);
  for (const Segment& segment : segments) {
    const size_t blocks = (segment.row_count() + kRowBlock - 1) / kRowBlock;
    context.team.parallel_for(heads * blocks, [&](size_t task) {
      if (context.cancel.cancelled()) return;
      const size_t first = task / heads * kRowBlock;
      run_head(context, config, weights, layer, segment, task % heads, first,
               std::min(kRowBlock, segment.row_count() - first), queries, attended);
    });
  }
  if (config.mla_output_gate) {
    const Rows gate = linear(context, weights.matrix(TensorRole::GProj), packed);
    context.team.parallel_for(rows.count, [&](size_t i) {
      context.kernels.sigmoid_gate(attended.row(i), gate.row(i), attended.row(i), attended.width);
    });
  }
  PackedRows packed_attended(context, attended);
  linear(context, weights.matrix(TensorRole::OProj), packed_attended, out);
}

}  // namespace deltafin::model
