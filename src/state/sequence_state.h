// The state of one sequence, and the transaction through which alone it changes.
//
// Committed state is never written: a transaction appends cache rows behind the committed end and
// computes the next recurrent state into a second buffer. Dropping the transaction drops both, so a
// failed, cancelled or rejected pass has simply not happened. For the same reason a fork is a copy
// of pointers: pages and recurrent states are shared until one side moves on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "state/layout.h"

namespace deltafin::state {

// kPagePositions rows of one layer's cache.
struct Page {
  std::vector<float> rows;
};

struct RecurrentState {
  std::vector<float> window;  // [window_rows, window_width], oldest row first
  std::vector<float> matrix;  // [head, key_dim, value_dim], or what the layer says
};

class Transaction;

// Not thread-safe; the engine thread owns it.
class SequenceState {
 public:
  // Empty: position 0, recurrent state zero. `layout` must outlive it.
  explicit SequenceState(const Layout& layout);
  SequenceState(SequenceState&&) = default;
  SequenceState& operator=(SequenceState&&) = default;

  // The same state again, sharing memory until either side changes.
  SequenceState fork() const;

  uint64_t position_count() const { return position_count_; }
  const Layout& layout() const { return *layout_; }
  // Committed rows of one page of a paged layer, row after row: kPagePositions of them, fewer on
  // the last page.
  std::span<const float> cache_rows(size_t layer, uint64_t page) const;
  // Committed state of a recurrent layer.
  const RecurrentState& recurrent(size_t layer) const { return *layers_[layer].recurrent; }

  // The memory that a fork made now would hold, buffer by buffer, however many others hold it too:
  // visit(which, bytes). The same `which` of two states is the same memory.
  using BufferVisitor = std::function<void(const void* which, uint64_t bytes)>;
  void visit_buffers(const BufferVisitor& visit) const;

 private:
  friend class Transaction;
  struct Layer {
    std::vector<std::shared_ptr<Page>> pages;         // paged layers
    std::shared_ptr<const RecurrentState> recurrent;  // recurrent layers
    std::shared_ptr<RecurrentState> spare;            // the buffer before last, used again
  };

  const Layout* layout_;
  std::vector<Layer> layers_;
  uint64_t position_count_ = 0;
  bool open_ = false;  // a transaction lives
};

enum class ReplayInputs : uint8_t {
  Dropped,  // prefill: all rows or none are committed
  Kept,     // verify: any prefix may be committed
};

// Rows [base, base + row_count) of one sequence, on trial. At most one per sequence at a time; the
// sequence must outlive it and stay where it is.
class Transaction {
 public:
  Transaction(SequenceState& sequence, size_t row_count, ReplayInputs replay);
  ~Transaction();  // without commit(): nothing happened
  Transaction(Transaction&& other) noexcept;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  uint64_t base() const { return base_; }
  size_t row_count() const { return row_count_; }
  bool keeps_replay_inputs() const { return replay_ == ReplayInputs::Kept; }

  // Paged layers. A cache row of any position in [0, base + row_count); those before base are
  // committed and must not be written.
  float* cache_row(size_t layer, uint64_t position);
  const float* cache_page(size_t layer, uint64_t page) const;

  // Recurrent layers: the committed state, and the buffer for the state after all rows, whose
  // contents are unspecified until the layer has written all of it.
  const RecurrentState& before(size_t layer) const;
  RecurrentState& after(size_t layer);

  // Room for what a recurrent layer needs to replay its rows: `width` floats a row, row-major. Only
  // with ReplayInputs::Kept.
  std::span<float> keep_inputs(size_t layer, size_t width);
  std::span<const float> kept_inputs(size_t layer) const;

  // Makes rows [0, accepted) part of the sequence. When accepted < row_count, after() of every
  // recurrent layer must first have been rewritten for the shorter prefix (model::Model::replay). 0
  // is a rollback.
  void commit(size_t accepted);

 private:
  struct Layer {
    std::shared_ptr<RecurrentState> after;
    std::vector<float> inputs;
  };

  void close();

  SequenceState* sequence_;
  uint64_t base_;
  size_t row_count_;
  ReplayInputs replay_;
  std::vector<Layer> layers_;
};

}  // namespace deltafin::state
