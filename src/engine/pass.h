// A pass: rows of one or more sequences through all layers, as one transaction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace deltafin::engine {

enum class PassMode : uint8_t {
  Prefill,  // any number of rows, committed all or not at all
  Verify,   // at most limits::kVerifyRows rows; any prefix may be committed
};

enum class LogitsOf : uint8_t { None, LastRow, AllRows };

struct PassRequest {
  Sequence* sequence = nullptr;  // must outlive the pass and stay where it is; one open pass each
  std::span<const TokenId> tokens;
  PassMode mode = PassMode::Prefill;
  LogitsOf logits = LogitsOf::LastRow;
};

// Several passes over different sequences may be alive and be advanced in any interleaving.
// Dropping a pass before commit() leaves every sequence as it was.
//
//   begin -> advance_layer() x layer_count() -> finish() -> logits(), commit() per sequence
//
// After any error the pass can only be dropped.
class Pass {
 public:
  // Errors: Usage for an empty request, a token id outside the vocabulary, or too many rows.
  static Result<Pass> begin(Engine& engine, std::span<const PassRequest> requests);
  Pass(Pass&&) = default;

  size_t row_count() const { return row_count_; }
  size_t layers_done() const { return layers_done_; }
  bool layers_finished() const { return layers_done_ == engine_->layer_count(); }

  // Runs the next layer. Errors: Io, BadModel, Cancelled.
  Status advance_layer(const CancelToken& cancel);
  // Between the last layer and finish(): the logits of the rows [first, first + logits.count) of
  // one request, whatever it asked for. For who needs more of them than may exist at a time.
  // `logits` is [count, vocab_size]. Errors: BadModel, Cancelled.
  Status compute_logits(size_t request, size_t first, model::Rows logits,
                        const CancelToken& cancel);
  // Computes the logits that were asked for. Errors: BadModel, Cancelled.
  Status finish(const CancelToken& cancel);

  // After finish(). request: index into the requests; row: of that request. LastRow requests have
  // only their last row's logits. [vocab_size]
  std::span<const float> logits(size_t request, size_t row) const;

  // Makes the first `accepted` tokens of one request part of its sequence; once per request. A
  // prefill takes all or 0, a verify any number.
  void commit(size_t request, size_t accepted);

 private:
  struct Part {
    Sequence* sequence = nullptr;
    std::vector<TokenId> tokens;
    PassMode mode = PassMode::Prefill;
    LogitsOf logits = LogitsOf::LastRow;
    state::Transaction transaction;
    size_t first_row = 0;
    size_t first_logits = 0;  // index of the first row of ours in logits_
    bool committed = false;
  };

  explicit Pass(Engine& engine) : engine_(&engine) {}
  model::Context context(const CancelToken& cancel) const;

  Engine* engine_;
  std::vector<Part> parts_;
  size_t row_count_ = 0;
  size_t layers_done_ = 0;
  bool finished_ = false;
  model::Activations activations_;
  model::OwnedRows logits_;
};

// begin, all layers, finish.
Result<Pass> run_pass(Engine& engine, std::span<const PassRequest> requests,
                      const CancelToken& cancel);

}  // namespace deltafin::engine
