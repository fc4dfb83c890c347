#include "state/sequence_state.h"

#include <gtest/gtest.h>

#include <map>

namespace deltafin::state {
namespace {

// One paged layer of 2 floats a row, one recurrent layer of a 1 x 2 window and 3 matrix floats.
Layout small_layout() {
  return {.layers = {PagedLayout{.row_width = 2},
                     RecurrentLayout{.window_rows = 1, .window_width = 2, .matrix_size = 3}}};
}

// Appends rows whose values tell their position, and a recurrent state that counts rows.
void write_rows(Transaction& transaction, float tag) {
  for (size_t i = 0; i < transaction.row_count(); ++i) {
    float* row = transaction.cache_row(0, transaction.base() + i);
    row[0] = float(transaction.base() + i);
    row[1] = tag;
  }
  RecurrentState& after = transaction.after(1);
  after.window = {tag, tag};
  const float count = transaction.before(1).matrix[0] + float(transaction.row_count());
  after.matrix = {count, tag, tag};
}

void append(SequenceState& sequence, size_t rows, float tag) {
  Transaction transaction(sequence, rows, ReplayInputs::Dropped);
  write_rows(transaction, tag);
  transaction.commit(rows);
}

// What a fresh transaction sees as committed.
struct Seen {
  std::vector<float> tags;
  float count = 0;
};
Seen look(SequenceState& sequence) {
  Transaction transaction(sequence, 1, ReplayInputs::Dropped);
  Seen seen;
  for (uint64_t p = 0; p < transaction.base(); ++p) {
    const float* page = transaction.cache_page(0, p / kPagePositions);
    EXPECT_EQ(page[p % kPagePositions * 2], float(p));
    seen.tags.push_back(page[p % kPagePositions * 2 + 1]);
  }
  seen.count = transaction.before(1).matrix[0];
  return seen;
}

TEST(Layout, CountsBytesPerPositionAndPerSequence) {
  const Layout layout = small_layout();
  EXPECT_EQ(layout.bytes_per_position(), 8u);
  EXPECT_EQ(layout.fixed_bytes(), 20u);
}

TEST(SequenceState, StartsAtZero) {
  const Layout layout = small_layout();
  SequenceState sequence(layout);
  EXPECT_EQ(sequence.position_count(), 0u);
  EXPECT_EQ(look(sequence).count, 0);
}

TEST(Transaction, CommitMakesRowsPartOfTheSequence) {
  const Layout layout = small_layout();
  SequenceState sequence(layout);
  append(sequence, 2, 7);
  append(sequence, 1, 8);
  EXPECT_EQ(sequence.position_count(), 3u);
  const Seen seen = look(sequence);
  EXPECT_EQ(seen.tags, (std::vector<float>{7, 7, 8}));
  EXPECT_EQ(seen.count, 3);
}

TEST(Transaction, DroppedOneHasNotHappened) {
  const Layout layout = small_layout();
  SequenceState sequence(layout);
  append(sequence, 2, 7);
  {
    Transaction transaction(sequence, 600, ReplayInputs::Dropped);  // past a page border
    write_rows(transaction, 9);
  }
  EXPECT_EQ(sequence.position_count(), 2u);
  const Seen seen = look(sequence);
  EXPECT_EQ(seen.tags, (std::vector<float>{7, 7}));
  EXPECT_EQ(seen.count, 2);
}

TEST(Transaction, CommitOfNothingIsARollback) {
  const Layout layout = small_layout();
  SequenceState sequence(layout);
  append(sequence, 1, 7);
  Transaction transaction(sequence, 3, ReplayInputs::Kept);
  write_rows(transaction, 9);
  transaction.commit(0);
  EXPECT_EQ(look(sequence).count, 1);
}

TEST(Transaction, CommitOfAPrefixTakesTheRewrittenState) {
  const Layout layout = small_layout();
  SequenceState sequence(layout);
  Transaction transaction(sequence, 3, ReplayInputs::Kept);
  write_rows(transaction, 9);
  transaction.after(1).matrix = {2, 9, 9};  // what a replay of two rows would leave
  transaction.commit(2);
  EXPECT_EQ(sequence.position_count(), 2u);
  EXPECT_EQ(look(sequence).count, 2);
}

TEST(Transaction, RowsCrossPageBorders) {
  const Layout layout = small_layout();
  SequenceState sequence(layout);
  append(sequence, kPagePositions - 1, 1);
  append(sequence, 3, 2);
  const Seen seen = look(sequence);
  ASSERT_EQ(seen.tags.size(), kPagePositions + 2u);
  EXPECT_EQ(seen.tags[kPagePositions - 2], 1);
  EXPECT_EQ(seen.tags[kPagePositions - 1], 2);
  EXPECT_EQ(seen.tags[kPagePositions + 1], 2);
}

TEST(SequenceState, ForkSharesThePastAndNotTheFuture) {
  const Layout layout = small_layout();
  SequenceState parent(layout);
  append(parent, 5, 1);
  SequenceState child = parent.fork();
  append(parent, 1, 2);
  append(child, 2, 3);
  EXPECT_EQ(look(parent).tags, (std::vector<float>{1, 1, 1, 1, 1, 2}));
  EXPECT_EQ(look(child).tags, (std::vector<float>{1, 1, 1, 1, 1, 3, 3}));
  EXPECT_EQ(look(parent).count, 6);
  EXPECT_EQ(look(child).count, 7);
}

TEST(SequenceState, ForkOfASequenceWithAnOpenTransactionSeesOnlyWhatIsCommitted) {
  const Layout layout = small_layout();
  SequenceState parent(layout);
  append(parent, 2, 1);
  Transaction transaction(parent, 2, ReplayInputs::Dropped);
  SequenceState child = parent.fork();
  write_rows(transaction, 2);
  append(child, 1, 3);
  transaction.commit(2);
  EXPECT_EQ(look(child).tags, (std::vector<float>{1, 1, 3}));
  EXPECT_EQ(look(parent).tags, (std::vector<float>{1, 1, 2, 2}));
}

TEST(SequenceState, ForksNameTheMemoryTheyShare) {
  constexpr uint64_t kPageBytes = uint64_t{kPagePositions} * 2 * sizeof(float);
  const Layout layout = small_layout();
  SequenceState sequence(layout);
  append(sequence, kPagePositions + 1, 1);
  const auto buffers_of = [](const SequenceState& state) {
    std::map<const void*, uint64_t> buffers;
    state.visit_buffers([&](const void* which, uint64_t bytes) { buffers[which] = bytes; });
    return buffers;
  };
  const SequenceState fork = sequence.fork();
  const std::map<const void*, uint64_t> before = buffers_of(fork);
  EXPECT_EQ(buffers_of(sequence), before);
  uint64_t bytes = 0;
  for (const auto& [which, size] : before) bytes += size;
  EXPECT_EQ(bytes, 2 * kPageBytes + layout.fixed_bytes());

  // Going on takes a copy of the last page and another recurrent state; the first page is shared.
  append(sequence, 1, 2);
  std::map<const void*, uint64_t> all = buffers_of(sequence);
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(buffers_of(fork), before);
  all.merge(buffers_of(fork));
  EXPECT_EQ(all.size(), 5u);
}

TEST(SequenceState, MemoryOfRowsThatAreNotCommittedIsNotNamed) {
  const Layout layout = small_layout();
  SequenceState sequence(layout);
  append(sequence, 1, 1);
  const Transaction transaction(sequence, 2 * kPagePositions, ReplayInputs::Dropped);
  size_t buffers = 0;
  sequence.visit_buffers([&](const void*, uint64_t) { ++buffers; });
  EXPECT_EQ(buffers, 2u);
}

TEST(TransactionDeathTest, TwoOnOneSequenceAreABug) {
  const Layout layout = small_layout();
  SequenceState sequence(layout);
  Transaction first(sequence, 1, ReplayInputs::Dropped);
  EXPECT_DEATH(Transaction(sequence, 1, ReplayInputs::Dropped), "open_");
}

TEST(TransactionDeathTest, APrefixOfAPrefillIsABug) {
  const Layout layout = small_layout();
  SequenceState sequence(layout);
  Transaction transaction(sequence, 2, ReplayInputs::Dropped);
  EXPECT_DEATH(transaction.commit(1), "Kept");
}

}  // namespace
}  // namespace deltafin::state
