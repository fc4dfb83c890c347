// Committed states of earlier requests, kept for prompts that begin with the same tokens.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/token.h"
#include "engine/engine.h"
#include "engine/generate.h"

namespace deltafin::engine {

// A sequence, and what comes next of it.
struct KeptState {
  Sequence sequence;
  Continuation next;
  bool is_to_be_saved = false;  // on disk too, when there is time
};

enum class Lasting : uint8_t { InMemory, OnDisk };

// Bounded: who was used longest ago goes first. Forks share memory, so bytes are counted buffer by
// buffer, each once; what is also held by a sequence that is being computed is counted all the
// same, for it is ours as soon as that one has moved on.
//
// Not thread-safe; the engine thread owns it.
class KeptStates {
 public:
  explicit KeptStates(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // Keeps a fork. What is there already becomes the one that was used last.
  void keep(const Sequence& sequence, const Continuation& next, Lasting lasting);
  // The longest one that `prompt` can go on from: it has fewer tokens than the prompt, or all of
  // them and the logits that choose the next one. Null: none. Valid until the next keep().
  const KeptState* find(std::span<const TokenId> prompt);
  // One that is to be saved and is no more from now on; the one used last first. Null: none. Valid
  // until the next keep().
  const KeptState* take_to_be_saved();

  uint64_t count() const { return states_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  using Iterator = std::list<KeptState>::iterator;
  struct Buffer {
    uint64_t bytes = 0;
    uint64_t holders = 0;
  };

  Iterator find_same(std::span<const TokenId> tokens);
  void add(const KeptState& state);
  void drop(Iterator state);

  uint64_t budget_bytes_;
  uint64_t bytes_ = 0;
  std::list<KeptState> states_;  // the one used last first
  std::unordered_map<const void*, Buffer> buffers_;
};

}  // namespace deltafin::engine
