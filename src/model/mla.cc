#include "model/mla.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/floats.h"

namespace deltafin::model {

using checkpoint::KimiConfig;
using checkpoint::TensorRole;
using memory::LayerWeights;
using numerics::AttentionChunk;
using numerics::AttentionPartials;
using numerics::kAttentionChunk;
using numerics::WeightMatrix;

static_assert(state::kPagePositions == kAttentionChunk, "a page is a chunk of attention");

namespace {

// Queries that a task takes, rows of one segment times heads: they share every cache row that is
// read. Rows first, for they share the head's W_k and W_v too.
constexpr size_t kRowBlock = 8, kQueriesAtOnce = 24;

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

// Buffers of one thread, for kQueriesAtOnce queries.
struct QueryScratch {
  Floats queries, scores, running, next, latent, packed;
  float maxima[2][kQueriesAtOnce], totals[2][kQueriesAtOnce];

  void fit(size_t width, size_t rank) {
    queries.at_least(kQueriesAtOnce * width);
    scores.at_least(kQueriesAtOnce * kAttentionChunk);
    running.at_least(kQueriesAtOnce * rank);
    next.at_least(kQueriesAtOnce * rank);
    latent.at_least(kQueriesAtOnce * rank);
    packed.at_least(kRowBlock * numerics::packed_size(rank));
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

// Some rows of a segment and some heads: query (row, head) has index row * head_count + head.
struct QueryBlock {
  size_t first_row = 0, row_count = 0;  // within the segment
  size_t first_head = 0, head_count = 0;

  size_t size() const { return row_count * head_count; }
};

// softmax(q' . cache * scale) of every query over the positions up to its own, of the latent part
// -> scratch.latent [query, rank].
void attend(Context& context, const KimiConfig& config, const state::Transaction& transaction,
            size_t layer, const QueryBlock& block, QueryScratch& scratch) {
  const size_t rank = config.kv_lora_rank, width = rank + config.qk_rope_head_dim;
  const uint64_t first_position = transaction.base() + block.first_row;
  AttentionChunk chunk;
  chunk.query_stride = chunk.key_stride = chunk.key_dim = chunk.value_stride = width;
  chunk.value_dim = rank;
  chunk.scale = float(1.0 / std::sqrt(double(config.qk_nope_head_dim + config.qk_rope_head_dim)));
  const AttentionPartials running{scratch.maxima[0], scratch.totals[0], scratch.running.data(),
                                  rank};
  const AttentionPartials next{scratch.maxima[1], scratch.totals[1], scratch.next.data(), rank};
  std::array<size_t, kQueriesAtOnce> seen;
  for (uint64_t start = 0; start < first_position + block.row_count; start += kAttentionChunk) {
    // Rows before the chunk see nothing of it.
    const size_t skipped = start > first_position ? size_t(start - first_position) : 0;
    const size_t first = skipped * block.head_count;
    for (size_t query = first; query < block.size(); ++query) {
      const uint64_t position = first_position + query / block.head_count;
      seen[query] = std::min<uint64_t>(kAttentionChunk, position + 1 - start);
    }
    chunk.queries = scratch.queries.data() + first * width;
    chunk.query_count = block.size() - first;
    chunk.position_counts = seen.data() + first;
    chunk.keys = chunk.values = transaction.cache_page(layer, start / kAttentionChunk);
    context.kernels.attention_chunk(chunk, scratch.scores.data(),
                                    (start == 0 ? running : next).from(first));
    if (start > 0)
      context.kernels.attention_fold(running.from(first), next.from(first), chunk.query_count,
                                     rank);
  }
  context.kernels.attention_finish(running, block.size(), rank, scratch.latent.data(), rank);
}

// o = W_v attend(W_k^T q_nope | q_extra) for every query of the block.
void run_block(Context& context, const KimiConfig& config, const LayerWeights& weights,
               size_t layer, const Segment& segment, const QueryBlock& block, Rows queries,
               Rows out) {
  thread_local QueryScratch scratch;
  const size_t rank = config.kv_lora_rank, nope = config.qk_nope_head_dim;
  const size_t extra = config.qk_rope_head_dim, width = rank + extra;
  scratch.fit(width, rank);
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
  attend(context, config, *segment.transaction, layer, block, scratch);
  const size_t packed_stride = numerics::packed_size(rank);
  for (size_t i = 0; i < block.head_count; ++i) {
    const size_t head = block.first_head + i;
    const WeightMatrix value = head_weights(config, weights, head).value;
    for (size_t r = 0; r < block.row_count; ++r)
      context.kernels.pack_column(value.format,
                                  scratch.latent.data() + (r * block.head_count + i) * rank, rank,
                                  scratch.packed.data() + r * packed_stride);
    context.kernels.product(value, scratch.packed.data(), packed_stride, block.row_count,
                            out.row(row) + head * config.v_head_dim, out.stride);
  }
}

// All rows of a segment, split into blocks of rows and heads that keep the whole team busy.
void run_segment(Context& context, const KimiConfig& config, const LayerWeights& weights,
                 size_t layer, const Segment& segment, Rows queries, Rows out) {
  const size_t rows = segment.row_count(), heads = config.mla_head_count;
  const size_t row_block = std::min(rows, kRowBlock);
  const size_t row_blocks = (rows + row_block - 1) / row_block;
  // As many heads a task as leave one for every thread: a cache row is read once for all of them.
  const size_t threads = context.team.size();
  const size_t spread = (heads * row_blocks + threads - 1) / threads;
  const size_t head_block = std::min({spread, heads, kQueriesAtOnce / row_block});
  const size_t head_blocks = (heads + head_block - 1) / head_block;
  context.team.parallel_for(head_blocks * row_blocks, [&](size_t task) {
    if (context.cancel.cancelled()) return;
    QueryBlock block;
    block.first_row = task / head_blocks * row_block;
    block.row_count = std::min(row_block, rows - block.first_row);
    block.first_head = task % head_blocks * head_block;
    block.head_count = std::min(head_block, heads - block.first_head);
    run_block(context, config, weights, layer, segment, block, queries, out);
  });
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

  const Rows attended =
      context.workspace.take(rows.count, config.mla_head_count * config.v_head_dim);
  for (const Segment& segment : segments)
    run_segment(context, config, weights, layer, segment, queries, attended);
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
