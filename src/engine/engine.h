// The engine: an opened model with everything it runs on, and the sequences that live in it. Speaks
// only tokens.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/memory_pressure.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "base/token.h"
#include "checkpoint/checkpoint.h"
#include "io/file.h"
#include "io/reader.h"
#include "memory/expert_store.h"
#include "memory/trunk.h"
#include "model/model.h"
#include "numerics/kernels.h"
#include "state/sequence_state.h"

namespace deltafin::engine {

struct EngineOptions {
  size_t thread_count = 1;
  const numerics::Kernels* kernels = nullptr;  // null: the best for this processor
  uint64_t expert_cache_bytes = 1ull << 30;
  // Whether experts are read that are only likely to be needed.
  memory::Hints hints = memory::Hints::Proven;
  // The first so many layers of the trunk stay in memory; the others are read for every pass.
  uint32_t resident_layers = ~uint32_t{0};
  // Bound on the activations of one pass; a prompt that needs more is prefilled in several passes.
  // The bits do not depend on it.
  uint64_t activation_bytes = 1ull << 30;
};

// The outside world as seams. All must outlive the engine.
struct EngineEnvironment {
  const io::Storage& storage;
  io::Reader& reader;
  const Clock& clock;
  // By which the engine notices that memory is short, and makes do with fewer experts; may be null.
  const PressureGauge* pressure = nullptr;
};

struct EngineCounters {
  memory::ExpertCounters experts;
  memory::TrunkCounters trunk;
  uint64_t workspace_bytes = 0;                       // scratch of the largest pass so far
  uint64_t passes = 0;                                // completed
  uint64_t rows = 0;                                  // of completed passes
  std::vector<std::chrono::nanoseconds> layer_times;  // of each layer, over all passes
};

// Where the pass that was advanced last is.
struct PassPosition {
  uint32_t layer = 0;  // being computed, or computed last
  uint32_t rows = 0;
};

// One timeline: committed tokens and the state after them. Must not move while a pass is open on
// it.
class Sequence {
 public:
  explicit Sequence(const state::Layout& layout) : state_(layout) {}
  // One that was saved. `state` is what `tokens`, all of them, left behind.
  Sequence(std::vector<TokenId> tokens, state::SequenceState state)
      : tokens_(std::move(tokens)), state_(std::move(state)) {
    CHECK(tokens_.size() == state_.position_count());
  }

  const std::vector<TokenId>& tokens() const { return tokens_; }
  uint64_t position_count() const { return tokens_.size(); }
  const state::SequenceState& state() const { return state_; }
  Sequence fork() const { return Sequence(tokens_, state_.fork()); }

 private:
  friend class Pass;

  std::vector<TokenId> tokens_;
  state::SequenceState state_;
};

// Not thread-safe: one thread, the engine thread, opens it and makes all calls but position().
class Engine {
 public:
  // Loads the trunk. Errors: BadModel, Io, OverBudget, Cancelled.
  static Result<std::unique_ptr<Engine>> open(
      const EngineEnvironment& environment, checkpoint::Checkpoint checkpoint,
      const EngineOptions& options,
      const std::function<void(const memory::TrunkProgress&)>& progress, const CancelToken& cancel);
  // Opens the checkpoint in `directory`, too.
  static Result<std::unique_ptr<Engine>> open(
      const EngineEnvironment& environment, const std::string& directory,
      const EngineOptions& options,
      const std::function<void(const memory::TrunkProgress&)>& progress, const CancelToken& cancel);

  const checkpoint::ModelContract& contract() const { return checkpoint_.contract(); }
  size_t vocab_size() const { return model_->vocab_size(); }
  // Errors: Usage, naming the first id that is outside the vocabulary.
  Status check_tokens(std::span<const TokenId> tokens) const;
  size_t layer_count() const { return model_->layer_count(); }
  const state::Layout& state_layout() const { return model_->state_layout(); }
  const numerics::Kernels& kernels() const { return kernels_; }
  size_t thread_count() const { return team_.size(); }
  const Clock& clock() const { return environment_.clock; }

  Sequence new_sequence() const { return Sequence(model_->state_layout()); }
  // How many rows one prefill pass may have under EngineOptions::activation_bytes; at least 1.
  size_t prefill_rows() const;

  EngineCounters snapshot() const;
  // From any thread.
  PassPosition position() const { return {layer_now_, rows_now_}; }
  // Sees everything that passes compute from now on; null for none.
  void set_observer(model::Observer* observer) { observer_ = observer; }

 private:
  friend class Pass;
  Engine(const EngineEnvironment& environment, const EngineOptions& options,
         checkpoint::Checkpoint checkpoint);

  EngineEnvironment environment_;
  EngineOptions options_;
  checkpoint::Checkpoint checkpoint_;
  ThreadTeam team_;
  const numerics::Kernels& kernels_;
  std::unique_ptr<memory::Trunk> trunk_;
  std::unique_ptr<memory::ExpertStore> experts_;
  std::unique_ptr<model::Model> model_;
  model::Workspace workspace_;
  model::Observer* observer_ = nullptr;
  PressureWatch pressure_;
  uint64_t passes_ = 0, rows_ = 0;
  std::vector<std::chrono::nanoseconds> layer_times_;
  std::atomic<uint32_t> layer_now_ = 0, rows_now_ = 0;
};

}  // namespace deltafin::engine
