#include "model/attention.h"

#include <algorithm>
#include <array>

namespace deltafin::model {

using numerics::AttentionChunk;
using numerics::AttentionPartials;
using numerics::kAttentionChunk;

static_assert(state::kPagePositions == kAttentionChunk, "a page is a chunk of attention");

void QueryScratch::fit(const CacheColumns& columns) {
  queries.at_least(kQueriesAtOnce * columns.key_dim);
  attended.at_least(kQueriesAtOnce * columns.value_dim);
  scores.at_least(kQueriesAtOnce * kAttentionChunk);
  running.at_least(kQueriesAtOnce * columns.value_dim);
  next.at_least(kQueriesAtOnce * columns.value_dim);
}

void attend(const numerics::Kernels& kernels, const state::Transaction& transaction, size_t layer,
            const CacheColumns& columns, float scale, const QueryBlock& block,
            QueryScratch& scratch) {
  const uint64_t first_position = transaction.base() + block.first_row;
  const size_t value_dim = columns.value_dim;
  AttentionChunk chunk;
  chunk.query_stride = chunk.key_dim = columns.key_dim;
  chunk.key_stride = chunk.value_stride = columns.row_width;
  chunk.value_dim = value_dim;
  chunk.scale = scale;
  const AttentionPartials running{scratch.maxima[0], scratch.totals[0], scratch.running.data(),
                                  value_dim};
  const AttentionPartials next{scratch.maxima[1], scratch.totals[1], scratch.next.data(),
                               value_dim};
  std::array<size_t, kQueriesAtOnce> seen;
  for (uint64_t start = 0; start < first_position + block.row_count; start += kAttentionChunk) {
    // Rows before the chunk see nothing of it.
    const size_t skipped = start > first_position ? size_t(start - first_position) : 0;
    const size_t first = skipped * block.head_count;
    for (size_t query = first; query < block.size(); ++query) {
      const uint64_t position = first_position + query / block.head_count;
      seen[query] = std::min<uint64_t>(kAttentionChunk, position + 1 - start);
    }
    chunk.queries = scratch.queries.data() + first * columns.key_dim;
    chunk.query_count = block.size() - first;
    chunk.position_counts = seen.data() + first;
    const float* page = transaction.cache_page(layer, start / kAttentionChunk);
    chunk.keys = page + columns.first_key;
    chunk.values = page + columns.first_value;
    kernels.attention_chunk(chunk, scratch.scores.data(),
                            (start == 0 ? running : next).from(first));
    if (start > 0)
      kernels.attention_fold(running.from(first), next.from(first), chunk.query_count, value_dim);
  }
  kernels.attention_finish(running, block.size(), value_dim, scratch.attended.data(), value_dim);
}

QueryBlocks::QueryBlocks(size_t row_count, size_t group_count, size_t heads_per_group,
                         size_t thread_count)
    : row_count_(row_count), group_count_(group_count), heads_per_group_(heads_per_group) {
  // Rows first: they may share more than the cache (MLA's heads have matrices of their own).
  row_block_ = std::min(row_count, kQueryRows);
  row_blocks_ = (row_count + row_block_ - 1) / row_block_;
  // As many heads a block as leave one block for every thread.
  const size_t blocks = row_blocks_ * group_count;
  const size_t spread = (heads_per_group * blocks + thread_count - 1) / thread_count;
  head_block_ = std::min({spread, heads_per_group, kQueriesAtOnce / row_block_});
  head_blocks_ = (heads_per_group + head_block_ - 1) / head_block_;
}

QueryBlock QueryBlocks::operator[](size_t index) const {
  const size_t head_block = index % head_blocks_;
  const size_t group = index / head_blocks_ % group_count_;
  QueryBlock block;
  block.first_row = index / (head_blocks_ * group_count_) * row_block_;
  block.row_count = std::min(row_block_, row_count_ - block.first_row);
  const size_t first = head_block * head_block_;
  block.first_head = group * heads_per_group_ + first;
  block.head_count = std::min(head_block_, heads_per_group_ - first);
  return block;
}

}  // namespace deltafin::model
