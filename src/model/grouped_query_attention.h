// Grouped-query attention: several query heads share a key and a value head; norms on queries and
// keys, then rotary positions; in Qwen3.5 a gate on the output.
#pragma once

#include "checkpoint/contract.h"
#include "model/attention.h"
#include "model/linear.h"

namespace deltafin::model {

// keys | values of all key-value heads.
state::PagedLayout grouped_query_state_layout(const checkpoint::QwenConfig& config);

// What all layers of a model share.
class GroupedQueryAttention {
 public:
  // `config` must outlive this.
  explicit GroupedQueryAttention(const checkpoint::QwenConfig& config);

  // out[i] = attention(rows[i]); rows are normed layer inputs, out.width == hidden size. Appends
  // one cache row per row of every segment.
  void run(Context& context, const memory::LayerWeights& weights, size_t layer,
           std::span<const Segment> segments, Rows rows, Rows out) const;

  // Floats of scratch a row needs at most.
  uint64_t workspace_per_row() const;

 private:
  // Of one pass through the layer.
  struct Projected {
    Rows queries;       // [rows, heads, query | gate]
    Rows keys, values;  // [rows, key-value heads, head_dim]
  };

  void rotate_row(const Context& context, const memory::LayerWeights& weights, size_t layer,
                  const Segment& segment, size_t row, const Projected& projected) const;
  void run_block(const Context& context, size_t layer, const Segment& segment,
                 const QueryBlock& block, const Projected& projected, Rows out) const;

  const checkpoint::QwenConfig& config_;
  std::vector<float> inverse_frequencies_;  // [rotary_dim / 2]
};

}  // namespace deltafin::model
