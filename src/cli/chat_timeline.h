// What a model has read of a chat: its state, kept from turn to turn.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "cli/chat_session.h"
#include "cli/output_file.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "io/file.h"
#include "state/snapshot.h"

namespace deltafin::cli {

// What a turn took.
struct TurnCost {
  uint64_t reused = 0;  // tokens of the prompt whose state was there
  uint64_t read = 0;    // and the others
  std::chrono::nanoseconds read_time{0}, decode_time{0};
  uint64_t generated = 0;
  uint64_t decode_passes = 0;

  void add(const TurnCost& other);
};

class ChatTimeline {
 public:
  // At most so many states beside the newest are alive: at the border of the last turn, and, while
  // a turn is computed, that of the turn before and its border.
  static constexpr uint64_t kForks = 3;

  // `engine` must outlive it.
  explicit ChatTimeline(engine::Engine& engine) : engine_(engine), now_(engine.new_sequence()) {}

  uint64_t position_count() const { return now_.position_count(); }
  const TurnCost& last_turn() const { return last_turn_; }
  const TurnCost& all_turns() const { return all_turns_; }

  // Computes an answer, reusing the state of what `prompt` has in common with earlier turns.
  // `request` says everything but the prompt. Errors: those of engine::generate. After an error, or
  // without a single token, the timeline is as if there had been no turn.
  Result<engine::GenerationResult> answer(const text::TurnPrompt& prompt,
                                          engine::GenerateRequest request,
                                          engine::GenerationListener& listener,
                                          const CancelToken& cancel);
  void clear();

  // Something was read. Errors: Io; Usage when somebody made a file of that name meanwhile.
  Status save(PublishedFile& file, const state::SnapshotOwner& owner) const;
  // Errors: those of state::read_snapshot; Usage for more than `context` tokens.
  Status load(const io::Storage& storage, const std::string& path,
              const state::SnapshotOwner& owner, uint64_t context, const CancelToken& cancel);

 private:
  Result<engine::GenerationResult> compute(const text::TurnPrompt& prompt,
                                           engine::GenerateRequest request,
                                           engine::GenerationListener& listener,
                                           const CancelToken& cancel, TurnCost& cost);

  engine::Engine& engine_;
  engine::Sequence now_;
  std::optional<engine::Sequence> border_;  // in front of the last answer
  engine::Continuation next_;               // of now_
  TurnCost last_turn_, all_turns_;
};

}  // namespace deltafin::cli
