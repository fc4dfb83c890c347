// Causal attention over cached rows, for queries that share them: rows of a segment times the heads
// of one group. What the keys and values of a group are is the layer's business.
#pragma once

#include <span>

#include "base/floats.h"
#include "numerics/kernels.h"
#include "state/sequence_state.h"

namespace deltafin::model {

// Queries a task takes: each cache row is read once for all of them.
inline constexpr size_t kQueriesAtOnce = 24;
// Rows of a pass among them at most.
inline constexpr size_t kQueryRows = 8;

// Where the keys and values of a group of heads lie in a cache row of `row_width` floats.
struct CacheColumns {
  size_t row_width = 0;
  size_t first_key = 0, key_dim = 0;
  size_t first_value = 0, value_dim = 0;
};

// Some rows of a segment and some heads: query (row, head) has index row * head_count + head.
struct QueryBlock {
  size_t first_row = 0, row_count = 0;  // within the segment
  size_t first_head = 0, head_count = 0;

  size_t size() const { return row_count * head_count; }
};

// Buffers of one thread, for kQueriesAtOnce queries.
struct QueryScratch {
  Floats queries;   // [query, key_dim], filled by the layer
  Floats attended;  // [query, value_dim], what attend() returns
  Floats scores, running, next;
  float maxima[2][kQueriesAtOnce], totals[2][kQueriesAtOnce];

  void fit(const CacheColumns& columns);
};

// scratch.attended[q] = softmax(queries[q] . keys * scale) values, over the positions up to the
// query's own.
void attend(const numerics::Kernels& kernels, const state::Transaction& transaction, size_t layer,
            const CacheColumns& columns, float scale, const QueryBlock& block,
            QueryScratch& scratch);

// How the rows of a segment and its heads, in groups that share cache columns, are divided into
// blocks that keep the whole team busy. A block has heads of one group.
class QueryBlocks {
 public:
  QueryBlocks(size_t row_count, size_t group_count, size_t heads_per_group, size_t thread_count);

  size_t size() const { return row_blocks_ * group_count_ * head_blocks_; }
  QueryBlock operator[](size_t index) const;

 private:
  size_t row_count_, group_count_, heads_per_group_;
  size_t row_block_, row_blocks_;    // rows of a block, blocks of all rows
  size_t head_block_, head_blocks_;  // heads of a block, blocks of a group
};

}  // namespace deltafin::model
