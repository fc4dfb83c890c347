#include "engine/kept_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"

namespace deltafin::engine {
namespace {

using state::kPagePositions;

// One layer of either kind.
const state::Layout kLayout{
    .layers = {state::PagedLayout{.row_width = 4},
               state::RecurrentLayout{.window_rows = 3, .window_width = 8, .matrix_size = 40}}};
constexpr uint64_t kPageBytes = uint64_t{kPagePositions} * 4 * sizeof(float);
constexpr uint64_t kRecurrentBytes = (3 * 8 + 40) * sizeof(float);
constexpr uint64_t kPlenty = 1 << 30;
// Tokens, logits and the entry itself.
constexpr uint64_t kSmallThings = 1 << 13;

void extend(std::vector<TokenId>& tokens, state::SequenceState& state,
            const std::vector<TokenId>& by) {
  state::Transaction transaction(state, by.size(), state::ReplayInputs::Dropped);
  for (size_t i = 0; i < by.size(); ++i) transaction.cache_row(0, tokens.size() + i)[0] = 1;
  transaction.after(1) = transaction.before(1);
  transaction.commit(by.size());
  tokens.insert(tokens.end(), by.begin(), by.end());
}

Sequence sequence_of(const std::vector<TokenId>& tokens) {
  std::vector<TokenId> known;
  state::SequenceState state(kLayout);
  extend(known, state, tokens);
  return {known, std::move(state)};
}

// A fork of `from` that went on.
Sequence longer(const Sequence& from, const std::vector<TokenId>& by) {
  std::vector<TokenId> known = from.tokens();
  state::SequenceState state = from.state().fork();
  extend(known, state, by);
  return {known, std::move(state)};
}

Continuation with_logits() { return {.waiting = {}, .logits = {1, 2}}; }
Continuation with_waiting() { return {.waiting = {9}, .logits = {}}; }

uint64_t found(KeptStates& kept, const std::vector<TokenId>& prompt) {
  const KeptState* state = kept.find(prompt);
  return state == nullptr ? 0 : state->sequence.position_count();
}

TEST(KeptStates, FindTheLongestBeginning) {
  KeptStates kept(kPlenty);
  for (const std::vector<TokenId>& tokens :
       std::vector<std::vector<TokenId>>{{1}, {1, 2, 3}, {1, 2}, {1, 2, 4, 5}, {2}})
    kept.keep(sequence_of(tokens), with_logits(), Lasting::InMemory);
  EXPECT_EQ(found(kept, {1, 2, 3, 4}), 3u);
  EXPECT_EQ(found(kept, {1, 2, 4, 4}), 2u);
  EXPECT_EQ(found(kept, {1, 3}), 1u);
  EXPECT_EQ(found(kept, {3}), 0u);
}

TEST(KeptStates, AWholePromptIsFoundOnlyWithLogits) {
  KeptStates kept(kPlenty);
  kept.keep(sequence_of({1, 2}), with_waiting(), Lasting::InMemory);
  EXPECT_EQ(found(kept, {1, 2}), 0u);
  EXPECT_EQ(found(kept, {1, 2, 3}), 2u);
  kept.keep(sequence_of({1, 2}), with_logits(), Lasting::InMemory);
  EXPECT_EQ(found(kept, {1, 2}), 2u);
  EXPECT_EQ(kept.count(), 1u);
  // What is known is not forgotten for who knows less.
  kept.keep(sequence_of({1, 2}), with_waiting(), Lasting::InMemory);
  EXPECT_EQ(found(kept, {1, 2}), 2u);
}

TEST(KeptStates, WhoWasUsedLongestAgoGoes) {
  const uint64_t one = kPageBytes + kRecurrentBytes;
  KeptStates kept(3 * one + kSmallThings);
  kept.keep(sequence_of({1}), with_logits(), Lasting::InMemory);
  kept.keep(sequence_of({2}), with_logits(), Lasting::InMemory);
  kept.keep(sequence_of({3}), with_logits(), Lasting::InMemory);
  EXPECT_EQ(found(kept, {1, 1}), 1u);
  kept.keep(sequence_of({2}), with_logits(), Lasting::InMemory);
  kept.keep(sequence_of({4}), with_logits(), Lasting::InMemory);
  EXPECT_EQ(found(kept, {3, 3}), 0u);
  EXPECT_EQ(found(kept, {1, 1}), 1u);
  EXPECT_EQ(found(kept, {2, 2}), 1u);
  EXPECT_EQ(found(kept, {4, 4}), 1u);
  EXPECT_LE(kept.bytes(), 3 * one + kSmallThings);
}

TEST(KeptStates, SharedPagesAreCountedOnce) {
  KeptStates kept(kPlenty);
  const Sequence first = sequence_of(std::vector<TokenId>(2 * kPagePositions, 1));
  kept.keep(first, with_logits(), Lasting::InMemory);
  const uint64_t before = kept.bytes();
  EXPECT_GE(before, 2 * kPageBytes + kRecurrentBytes);
  kept.keep(longer(first, {2}), with_logits(), Lasting::InMemory);
  EXPECT_GE(kept.bytes(), before + kPageBytes + kRecurrentBytes);
  EXPECT_LE(kept.bytes(), before + kPageBytes + kRecurrentBytes + kSmallThings);
}

// The pages of one that goes stay as long as another one has them, and so do their bytes.
TEST(KeptStates, WhatIsSharedIsFreedWithItsLastHolder) {
  constexpr uint64_t kOne = kPageBytes + kRecurrentBytes;
  // Room for the first two and half a page.
  KeptStates kept(3 * kPageBytes + 2 * kRecurrentBytes + 2 * kSmallThings + kPageBytes / 2);
  {
    const Sequence first = sequence_of(std::vector<TokenId>(2 * kPagePositions, 1));
    kept.keep(first, with_logits(), Lasting::InMemory);
    kept.keep(longer(first, {2}), with_logits(), Lasting::InMemory);
  }
  EXPECT_EQ(kept.count(), 2u);
  const std::vector<TokenId> two_pages(2 * kPagePositions, 7);
  kept.keep(sequence_of(two_pages), with_logits(), Lasting::InMemory);
  // Without the first there are as many pages as before, so the longer one went too.
  EXPECT_EQ(kept.count(), 1u);
  EXPECT_GE(kept.bytes(), kPageBytes + kOne);
  EXPECT_LE(kept.bytes(), kPageBytes + kOne + kSmallThings);
}

TEST(KeptStates, WhatCannotFitDropsNothing) {
  KeptStates kept(kPageBytes + kRecurrentBytes + kSmallThings);
  kept.keep(sequence_of({1}), with_logits(), Lasting::InMemory);
  kept.keep(sequence_of(std::vector<TokenId>(3 * kPagePositions, 1)), with_logits(),
            Lasting::InMemory);
  EXPECT_EQ(kept.count(), 1u);
  EXPECT_EQ(found(kept, {1, 1}), 1u);
}

TEST(KeptStates, NothingIsKeptWithoutABudgetOrWithoutTokens) {
  KeptStates none(0), some(kPlenty);
  none.keep(sequence_of({1}), with_logits(), Lasting::InMemory);
  some.keep(Sequence(kLayout), with_logits(), Lasting::InMemory);
  EXPECT_EQ(none.count() + none.bytes() + some.count() + some.bytes(), 0u);
}

TEST(KeptStates, AreSavedOnce) {
  KeptStates kept(kPlenty);
  kept.keep(sequence_of({1}), with_logits(), Lasting::InMemory);
  kept.keep(sequence_of({2, 2}), with_waiting(), Lasting::OnDisk);
  kept.keep(sequence_of({3, 3, 3}), with_waiting(), Lasting::OnDisk);
  kept.keep(sequence_of({2, 2}), with_logits(), Lasting::InMemory);
  EXPECT_EQ(kept.take_to_be_saved()->sequence.position_count(), 2u);
  EXPECT_EQ(kept.take_to_be_saved()->sequence.position_count(), 3u);
  EXPECT_EQ(kept.take_to_be_saved(), nullptr);
}

// A kept state is the same when its sequence has gone on.
TEST(KeptStates, AreForks) {
  KeptStates kept(kPlenty);
  std::vector<TokenId> tokens;
  state::SequenceState state(kLayout);
  extend(tokens, state, {1, 2});
  Sequence sequence(tokens, std::move(state));
  kept.keep(sequence, with_logits(), Lasting::InMemory);
  const float* page =
      kept.find(std::vector<TokenId>{1, 2})->sequence.state().cache_rows(0, 0).data();
  const Sequence next = longer(sequence, {3});
  EXPECT_NE(next.state().cache_rows(0, 0).data(), page);
  EXPECT_EQ(found(kept, {1, 2, 3}), 2u);
}

}  // namespace
}  // namespace deltafin::engine
