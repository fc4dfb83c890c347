#include "state/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "io/simulated.h"
#include "state/test_snapshot.h"

namespace deltafin::state {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class SnapshotTest : public testing::Test {
 protected:
  std::unique_ptr<io::File> file_of(const std::vector<std::byte>& bytes) {
    storage_.add_file("/states/f", bytes);
    return std::move(*storage_.open("/states/f"));
  }
  Result<Snapshot> read(const std::vector<std::byte>& bytes) {
    return read_snapshot(*file_of(bytes), owner_, layout_, never_);
  }
  // What is said about a file; "" if nothing. check and read must agree where both can.
  std::string complaint(const std::vector<std::byte>& bytes) {
    const Result<Snapshot> snapshot = read(bytes);
    const Result<SnapshotCounts> counts = check_snapshot(*file_of(bytes), owner_);
    if (snapshot) {
      EXPECT_TRUE(counts);
      return "";
    }
    if (!counts) {
      EXPECT_EQ(counts.error().what, snapshot.error().what);
    }
    EXPECT_THAT(snapshot.error().what, StartsWith("/states/f: "));
    return snapshot.error().what;
  }
  std::vector<std::byte> good(size_t count = 3) {
    const SequenceState state = test::filled_state(layout_, count);
    return test::bytes_of({.state = state,
                           .tokens = test::some_tokens(count),
                           .waiting = waiting_,
                           .logits = logits_});
  }
  // good() with other bytes at `at`, and right checksums.
  template <class T>
  std::vector<std::byte> changed(size_t at, T value) {
    std::vector<std::byte> bytes = good();
    std::memcpy(bytes.data() + at, &value, sizeof value);
    test::seal(bytes);
    return bytes;
  }

  io::SimulatedStorage storage_;
  Layout layout_ = test::mixed_layout();
  SnapshotOwner owner_ = test::owner();
  std::vector<TokenId> waiting_ = {4};
  std::vector<float> logits_;
  CancelToken never_;
};

void expect_same_state(const SequenceState& found, const SequenceState& expected) {
  ASSERT_EQ(found.position_count(), expected.position_count());
  for (size_t i = 0; i < expected.layout().layers.size(); ++i) {
    if (std::holds_alternative<RecurrentLayout>(expected.layout().layers[i])) {
      EXPECT_EQ(found.recurrent(i).window, expected.recurrent(i).window);
      EXPECT_EQ(found.recurrent(i).matrix, expected.recurrent(i).matrix);
      continue;
    }
    for (uint64_t page = 0; page * kPagePositions < expected.position_count(); ++page)
      EXPECT_TRUE(std::ranges::equal(found.cache_rows(i, page), expected.cache_rows(i, page)))
          << "layer " << i << " page " << page;
  }
}

TEST_F(SnapshotTest, BringsEveryFloatBackOnBothSidesOfEveryPageBorder) {
  for (const size_t count : {1u, 511u, 512u, 513u, 1024u, 1025u}) {
    const SequenceState state = test::filled_state(layout_, count);
    const std::vector<std::byte> bytes = good(count);
    EXPECT_EQ(bytes.size(), snapshot_bytes(layout_, {.tokens = count, .waiting = 1}));
    const Result<Snapshot> snapshot = read(bytes);
    ASSERT_TRUE(snapshot) << snapshot.error().what;
    expect_same_state(snapshot->state, state);
    EXPECT_EQ(snapshot->tokens, test::some_tokens(count));
    EXPECT_EQ(snapshot->waiting, waiting_);
    EXPECT_TRUE(snapshot->logits.empty());
  }
}

TEST_F(SnapshotTest, KeepsTheLogitsWhereNoTokenWaits) {
  waiting_ = {};
  logits_ = {1, -2, 3, 0, 5};
  const Result<Snapshot> snapshot = read(good());
  ASSERT_TRUE(snapshot) << snapshot.error().what;
  EXPECT_EQ(snapshot->logits, logits_);
  EXPECT_TRUE(snapshot->waiting.empty());
}

TEST_F(SnapshotTest, GoesOnLikeTheOriginal) {
  Result<Snapshot> snapshot = read(good(512));
  ASSERT_TRUE(snapshot);
  Transaction transaction(snapshot->state, 2, ReplayInputs::Kept);
  EXPECT_EQ(transaction.base(), 512u);
  EXPECT_EQ(transaction.cache_page(0, 0)[0], 1);
}

TEST_F(SnapshotTest, TellsItsCountsWithoutReadingTheState) {
  const Result<SnapshotCounts> counts = check_snapshot(*file_of(good()), owner_);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->tokens, 3u);
  EXPECT_EQ(counts->waiting, 1u);
}

TEST_F(SnapshotTest, NoticesEveryFlippedBit) {
  const std::vector<std::byte> whole = good();
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> bytes = whole;
      bytes[i] ^= std::byte(1 << bit);
      EXPECT_THAT(complaint(bytes), AnyOf(HasSubstr("damaged"), HasSubstr("is not a saved state"),
                                          HasSubstr("format version")))
          << "byte " << i << " bit " << bit;
    }
  }
}

TEST_F(SnapshotTest, NoticesEveryTruncationAndEveryByteTooMany) {
  const std::vector<std::byte> whole = good();
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(complaint({whole.begin(), whole.begin() + ptrdiff_t(size)}),
                AnyOf(HasSubstr("damaged"), HasSubstr("is not a saved state")))
        << size;
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_THAT(complaint(longer), HasSubstr("damaged: found"));
}

TEST_F(SnapshotTest, SaysWhatToDoAboutADamagedFile) {
  std::vector<std::byte> bytes = good();
  bytes[bytes.size() - test::kChecksumBytes - 1] ^= std::byte{1};
  const Result<Snapshot> snapshot = read(bytes);
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code, ErrorCode::Io);
  EXPECT_THAT(snapshot.error().what,
              AllOf(HasSubstr("found a content with the checksum"), HasSubstr(".., expected "),
                    HasSubstr("\n  read the prompt again without --load-state")));
}

TEST_F(SnapshotTest, IsRefusedForAnotherModelArithmeticOrVersion) {
  const std::vector<std::byte> bytes = good();
  owner_.identity.sha256[31] ^= std::byte{1};
  EXPECT_THAT(complaint(bytes),
              HasSubstr("saved from another model: identity 5a5a5a5a.., expected 5a5a5a5a.."));
  EXPECT_EQ(read(bytes).error().code, ErrorCode::Usage);
  owner_ = test::owner();
  owner_.arithmetic = "canon-2";
  EXPECT_THAT(complaint(bytes), HasSubstr("arithmetic \"canon-1\", expected \"canon-2\""));
  owner_ = test::owner();
  EXPECT_THAT(complaint(changed(24, 'x')), HasSubstr("arithmetic \"canon-1\""));  // in the padding
  EXPECT_THAT(complaint(changed(8, uint32_t{2})), HasSubstr("format version 2, expected 1"));
}

TEST_F(SnapshotTest, IsRefusedForAnotherLayout) {
  const std::vector<std::byte> bytes = good();
  std::get<PagedLayout>(layout_.layers[2]).row_width = 2;
  EXPECT_THAT(complaint(bytes), HasSubstr("layer 2 of another shape"));
  layout_.layers.pop_back();
  EXPECT_THAT(complaint(bytes), HasSubstr("state of 3 layers, expected 2"));
}

// Offsets are those of docs/formats.md.
TEST_F(SnapshotTest, BelievesNoCount) {
  EXPECT_EQ(complaint(changed(64, uint64_t{3})), "");
  EXPECT_THAT(complaint(changed(64, uint64_t{0})), HasSubstr("0 tokens, expected 1 to 2000"));
  EXPECT_THAT(complaint(changed(64, uint64_t{2001})), HasSubstr("2001 tokens"));
  EXPECT_THAT(complaint(changed(64, uint64_t{2000})), HasSubstr("another shape"));
  EXPECT_THAT(complaint(changed(64, UINT64_MAX)), HasSubstr("damaged"));
  EXPECT_THAT(complaint(changed(72, uint64_t{2001})), HasSubstr("2001 tokens that wait"));
  EXPECT_THAT(complaint(changed(72, uint64_t{2000})), HasSubstr("promises"));
  EXPECT_THAT(complaint(changed(72, uint64_t{0})), HasSubstr("0 logits, expected 5"));
  EXPECT_THAT(complaint(changed(80, uint64_t{5})), HasSubstr("5 logits, expected 0"));
  EXPECT_THAT(complaint(changed(88, uint64_t{1} << 60)), HasSubstr("damaged"));
  EXPECT_THAT(complaint(changed(12, UINT32_MAX)), HasSubstr("layers, expected at most"));
  EXPECT_THAT(complaint(changed(12, uint32_t{4000})), HasSubstr("too few for its header"));
}

TEST_F(SnapshotTest, RefusesTokensOutsideTheVocabulary) {
  const size_t tokens = test::kFixedBytes + 3 * test::kEntryBytes + test::kChecksumBytes;
  EXPECT_THAT(complaint(changed(tokens + 4, TokenId{5})),
              HasSubstr("token id 5 in place 2, expected 0 to 4"));
  EXPECT_THAT(complaint(changed(tokens + 12, TokenId{-1})), HasSubstr("token id -1 in place 1"));
}

TEST_F(SnapshotTest, RefusesLogitsThatNobodyCanChooseFrom) {
  waiting_ = {};
  logits_ = {1, 2, std::numeric_limits<float>::quiet_NaN(), 4, 5};
  EXPECT_THAT(complaint(good()), HasSubstr("logits that are not finite"));
}

TEST_F(SnapshotTest, ReadingCanBeCancelledAndFailsWithTheDisk) {
  CancelToken cancel;
  cancel.cancel();
  EXPECT_EQ(read_snapshot(*file_of(good()), owner_, layout_, cancel).error().code,
            ErrorCode::Cancelled);
  storage_.set_faults({.ranges = {{.file = "f", .offset = 300, .size = 1}}});
  EXPECT_EQ(read(good()).error().code, ErrorCode::Io);
}

TEST_F(SnapshotTest, WritingEndsWithTheFirstError) {
  const SequenceState state = test::filled_state(layout_, 1);
  const std::vector<TokenId> tokens = {0};
  int calls = 0;
  const Status status =
      write_snapshot(owner_, {.state = state, .tokens = tokens, .waiting = tokens, .logits = {}},
                     [&](std::span<const std::byte>) -> Status {
                       return ++calls == 3 ? Status(fail(ErrorCode::Io, "full")) : Status();
                     });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "full");
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace deltafin::state
