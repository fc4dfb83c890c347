#include "engine/kept_states.h"

#include <algorithm>

#include "base/check.h"

namespace deltafin::engine {

namespace {

// What a state holds beside its buffers.
uint64_t own_bytes(const std::vector<TokenId>& tokens, const Continuation& next) {
  return sizeof(KeptState) + (tokens.size() + next.waiting.size()) * sizeof(TokenId) +
         next.logits.size() * sizeof(float);
}

bool begins_with(std::span<const TokenId> prompt, std::span<const TokenId> beginning) {
  return prompt.size() >= beginning.size() &&
         std::ranges::equal(prompt.first(beginning.size()), beginning);
}

}  // namespace

void KeptStates::keep(const Sequence& sequence, const Continuation& next, Lasting lasting) {
  if (sequence.position_count() == 0) return;
  uint64_t bytes = own_bytes(sequence.tokens(), next);
  sequence.state().visit_buffers([&](const void*, uint64_t size) { bytes += size; });
  // It alone would not fit: nothing is dropped for it.
  if (bytes > budget_bytes_) return;
  bool is_to_be_saved = lasting == Lasting::OnDisk;
  const Iterator same = find_same(sequence.tokens());
  if (same != states_.end()) {
    is_to_be_saved |= same->is_to_be_saved;
    if (!same->next.logits.empty() || next.logits.empty()) {
      same->is_to_be_saved = is_to_be_saved;
      states_.splice(states_.begin(), states_, same);
      return;
    }
    drop(same);  // the same without logits
  }
  states_.push_front({sequence.fork(), next, is_to_be_saved});
  add(states_.front());
  while (bytes_ > budget_bytes_) drop(std::prev(states_.end()));
}

const KeptState* KeptStates::find(std::span<const TokenId> prompt) {
  Iterator longest = states_.end();
  for (Iterator state = states_.begin(); state != states_.end(); ++state) {
    const std::vector<TokenId>& tokens = state->sequence.tokens();
    if (longest != states_.end() && tokens.size() <= longest->sequence.tokens().size()) continue;
    if (!begins_with(prompt, tokens)) continue;
    if (tokens.size() == prompt.size() && state->next.logits.empty()) continue;
    longest = state;
  }
  if (longest == states_.end()) return nullptr;
  states_.splice(states_.begin(), states_, longest);
  return &states_.front();
}

const KeptState* KeptStates::take_to_be_saved() {
  const Iterator state = std::ranges::find_if(states_, &KeptState::is_to_be_saved);
  if (state == states_.end()) return nullptr;
  state->is_to_be_saved = false;
  return &*state;
}

KeptStates::Iterator KeptStates::find_same(std::span<const TokenId> tokens) {
  return std::ranges::find_if(states_, [&](const KeptState& state) {
    return std::ranges::equal(state.sequence.tokens(), tokens);
  });
}

void KeptStates::add(const KeptState& state) {
  bytes_ += own_bytes(state.sequence.tokens(), state.next);
  state.sequence.state().visit_buffers([&](const void* which, uint64_t size) {
    Buffer& buffer = buffers_[which];
    if (buffer.holders++ == 0) bytes_ += buffer.bytes = size;
  });
}

void KeptStates::drop(Iterator state) {
  bytes_ -= own_bytes(state->sequence.tokens(), state->next);
  state->sequence.state().visit_buffers([&](const void* which, uint64_t) {
    const auto buffer = buffers_.find(which);
    CHECK(buffer != buffers_.end());
    if (--buffer->second.holders > 0) return;
    bytes_ -= buffer->second.bytes;
    buffers_.erase(buffer);
  });
  states_.erase(state);
}

}  // namespace deltafin::engine
