#include "io/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/philox.h"
#include "io/queued_reader.h"
#include "io/simulated.h"

namespace deltafin::io {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The byte that every fake file holds at `offset`.
std::byte byte_at(uint64_t offset) { return std::byte(offset * 131 + (offset >> 8)); }

bool holds(std::span<const std::byte> bytes, uint64_t offset) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != byte_at(offset + i)) return false;
  return true;
}

// An endless file whose answer to each try is scripted: how many bytes come, or an error.
class ScriptedFile final : public File {
 public:
  static constexpr int kError = -1;
  using Script = std::function<int64_t(uint64_t offset, size_t size)>;

  explicit ScriptedFile(Script script = [](uint64_t, size_t size) { return int64_t(size); })
      : script_(std::move(script)) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return UINT64_MAX; }
  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    const int64_t count = script_(offset, into.size());
    if (count == kError) return fail(ErrorCode::Io, "scripted: Input/output error");
    for (size_t i = 0; i < size_t(count); ++i) into[i] = byte_at(offset + i);
    return size_t(count);
  }

 private:
  std::string path_ = "scripted";
  Script script_;
};

// A file whose reads start, are seen to have started, and finish only when the gate opens.
class GatedFile final : public File {
 public:
  const std::string& path() const override { return path_; }
  uint64_t size() const override { return UINT64_MAX; }

  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    std::unique_lock lock(mutex_);
    started_.push_back(offset);
    changed_.notify_all();
    changed_.wait(lock, [this] { return allowed_ > 0; });
    --allowed_;
    for (size_t i = 0; i < into.size(); ++i) into[i] = byte_at(offset + i);
    return into.size();
  }

  void let_finish(size_t count) {
    const std::lock_guard lock(mutex_);
    allowed_ += count;
    changed_.notify_all();
  }
  // Waits until `count` reads have started since the file was made; their offsets in that order.
  std::vector<uint64_t> started(size_t count) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return started_.size() >= count; });
    return started_;
  }

 private:
  std::string path_ = "gated";
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::vector<uint64_t> started_;
  mutable size_t allowed_ = 0;
};

// Buffers and requests for `count` reads of `size` bytes, one behind the other.
struct Batch {
  Batch(const File& file, size_t count, size_t size, uint64_t first_offset = 0)
      : memory(count * size) {
    for (size_t i = 0; i < count; ++i)
      requests.push_back(
          {&file, first_offset + i * size, std::span(memory).subspan(i * size, size), i});
  }
  std::vector<std::byte> memory;
  std::vector<ReadRequest> requests;
};

std::vector<ReadCompletion> collect(ReadChannel& channel) {
  std::vector<ReadCompletion> completions;
  while (std::optional<ReadCompletion> completion = channel.wait())
    completions.push_back(std::move(*completion));
  return completions;
}

// What holds for every reader.

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Reader>(SimulatedClock&)> make;
};

std::unique_ptr<Reader> threads(size_t count, uint64_t in_flight_bytes = 64ull << 20) {
  return make_thread_reader({.thread_count = count, .in_flight_bytes = in_flight_bytes});
}

// Threads where io_uring does not work.
std::unique_ptr<Reader> uring(uint32_t count, uint64_t in_flight_bytes = 64ull << 20) {
  Result<std::unique_ptr<Reader>> reader =
      make_uring_reader({.in_flight_count = count, .in_flight_bytes = in_flight_bytes});
  return reader ? std::move(*reader) : threads(count, in_flight_bytes);
}

class EveryReader : public testing::TestWithParam<Kind> {
 protected:
  SimulatedClock clock_;
  std::unique_ptr<Reader> reader_ = GetParam().make(clock_);
  std::unique_ptr<ReadChannel> channel_ = reader_->open_channel(ReadPriority::Demand);
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, EveryReader,
    testing::Values(Kind{"Threads4", [](SimulatedClock&) { return threads(4); }},
                    Kind{"Threads1", [](SimulatedClock&) { return threads(1); }},
                    Kind{"TightBound", [](SimulatedClock&) { return threads(4, 100); }},
                    Kind{"Uring8", [](SimulatedClock&) { return uring(8); }},
                    Kind{"Uring1", [](SimulatedClock&) { return uring(1); }},
                    Kind{"UringTightBound", [](SimulatedClock&) { return uring(8, 100); }},
                    Kind{"NoThreads", [](SimulatedClock&) { return threads(0); }},
                    Kind{"Simulated",
                         [](SimulatedClock& clock) {
                           return make_simulated_reader({.seed = 7}, clock);
                         }}),
    [](const testing::TestParamInfo<Kind>& kind) { return kind.param.name; });

TEST_P(EveryReader, FillsEveryBufferAndCompletesEveryRequestOnce) {
  const ScriptedFile file;
  Batch batch(file, 200, 1000, /*first_offset=*/77);
  channel_->submit(batch.requests);
  EXPECT_EQ(channel_->outstanding(), 200u);
  std::vector<int> seen(200);
  for (const ReadCompletion& completion : collect(*channel_)) {
    EXPECT_TRUE(completion.status);
    ++seen.at(completion.tag);
    const ReadRequest& request = batch.requests[completion.tag];
    EXPECT_TRUE(holds(request.into, request.offset)) << completion.tag;
  }
  EXPECT_EQ(seen, std::vector<int>(200, 1));
  EXPECT_EQ(channel_->outstanding(), 0u);
  const ReaderCounters counters = reader_->snapshot();
  EXPECT_EQ(counters.reads, 200u);
  EXPECT_EQ(counters.bytes, 200'000u);
  EXPECT_EQ(counters.failures + counters.retries + counters.cancelled, 0u);
}

TEST_P(EveryReader, HasNothingToWaitForWhenNothingIsOutstanding) {
  EXPECT_FALSE(channel_->wait());
  EXPECT_FALSE(channel_->poll());
  channel_->submit({});
  EXPECT_FALSE(channel_->wait());
}

TEST_P(EveryReader, CompletesAnEmptyRead) {
  const ScriptedFile file;
  const ReadRequest request{&file, 5, {}, 42};
  channel_->submit({&request, 1});
  const std::optional<ReadCompletion> completion = channel_->wait();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->tag, 42u);
  EXPECT_TRUE(completion->status);
}

TEST_P(EveryReader, PollingDeliversEverythingInTheEnd) {
  const ScriptedFile file;
  Batch batch(file, 20, 10);
  channel_->submit(batch.requests);
  size_t count = 0;
  while (channel_->outstanding() > 0)
    if (channel_->poll()) ++count;
  EXPECT_EQ(count, 20u);
}

TEST_P(EveryReader, ContinuesShortReadsWhereTheyStopped) {
  const ScriptedFile file([](uint64_t, size_t size) { return int64_t(size + 1) / 2; });
  Batch batch(file, 1, 1000);
  channel_->submit(batch.requests);
  EXPECT_TRUE(channel_->wait()->status);
  EXPECT_TRUE(holds(batch.memory, 0));
  EXPECT_GT(reader_->snapshot().retries, 0u);
}

TEST_P(EveryReader, TriesAFailedReadOnceMore) {
  int try_count = 0;
  const ScriptedFile file([&](uint64_t, size_t size) {
    return ++try_count == 1 ? ScriptedFile::kError : int64_t(size);
  });
  Batch batch(file, 1, 100, /*first_offset=*/3);
  channel_->submit(batch.requests);
  EXPECT_TRUE(channel_->wait()->status);
  EXPECT_TRUE(holds(batch.memory, 3));
  EXPECT_EQ(try_count, 2);
  EXPECT_EQ(reader_->snapshot().retries, 1u);
  EXPECT_EQ(reader_->snapshot().failures, 0u);
}

TEST_P(EveryReader, ASecondErrorNamesPathOffsetExpectedAndGot) {
  int try_count = 0;
  const ScriptedFile file([&](uint64_t offset, size_t) {
    ++try_count;
    return offset == 4096 ? 60 : int64_t{ScriptedFile::kError};
  });
  Batch batch(file, 1, 100, /*first_offset=*/4096);
  channel_->submit(batch.requests);
  const std::optional<ReadCompletion> completion = channel_->wait();
  ASSERT_FALSE(completion->status);
  EXPECT_EQ(completion->status.error().code, ErrorCode::Io);
  EXPECT_THAT(
      completion->status.error().what,
      AllOf(StartsWith("scripted: "), HasSubstr("expected 100 bytes at offset 4096, got 60"),
            HasSubstr("Input/output error")));
  EXPECT_EQ(try_count, 3);  // what came, the rest, the rest again
  EXPECT_EQ(reader_->snapshot().failures, 1u);
  EXPECT_EQ(reader_->snapshot().bytes, 0u);
}

TEST_P(EveryReader, TheEndOfTheFileIsAnErrorAfterASecondLook) {
  int try_count = 0;
  const ScriptedFile file([&](uint64_t, size_t) {
    ++try_count;
    return 0;
  });
  Batch batch(file, 1, 100, /*first_offset=*/4096);
  channel_->submit(batch.requests);
  const std::optional<ReadCompletion> completion = channel_->wait();
  ASSERT_FALSE(completion->status);
  EXPECT_THAT(completion->status.error().what, HasSubstr("100 bytes at offset 4096, got 0"));
  EXPECT_EQ(try_count, 2);
}

TEST_P(EveryReader, OneBadReadDoesNotTouchTheOthers) {
  const ScriptedFile file([](uint64_t offset, size_t size) {
    return offset / 100 == 5 ? ScriptedFile::kError : int64_t(size);
  });
  Batch batch(file, 10, 100);
  channel_->submit(batch.requests);
  for (const ReadCompletion& completion : collect(*channel_))
    EXPECT_EQ(completion.status.has_value(), completion.tag != 5) << completion.tag;
}

TEST_P(EveryReader, ChannelsGetOnlyTheirOwnCompletions) {
  const ScriptedFile file;
  const std::unique_ptr<ReadChannel> hints = reader_->open_channel(ReadPriority::Hint);
  Batch urgent(file, 10, 100);
  Batch advisory(file, 20, 100);
  hints->submit(advisory.requests);
  channel_->submit(urgent.requests);
  EXPECT_EQ(collect(*channel_).size(), 10u);
  EXPECT_EQ(hints->outstanding(), 20u);
  EXPECT_EQ(collect(*hints).size(), 20u);
}

TEST_P(EveryReader, NothingIsOutstandingAfterCancelAndTheChannelWorksOn) {
  const ScriptedFile file;
  Batch dropped(file, 100, 100);
  channel_->submit(dropped.requests);
  channel_->cancel();
  EXPECT_EQ(channel_->outstanding(), 0u);
  EXPECT_FALSE(channel_->poll());
  EXPECT_FALSE(channel_->wait());
  const ReaderCounters counters = reader_->snapshot();
  EXPECT_EQ(counters.reads + counters.cancelled, 100u);

  std::ranges::fill(dropped.memory, std::byte{0});
  Batch batch(file, 10, 100);
  channel_->submit(batch.requests);
  EXPECT_EQ(collect(*channel_).size(), 10u);
  EXPECT_TRUE(std::ranges::all_of(dropped.memory, [](std::byte b) { return b == std::byte{0}; }));
}

TEST_P(EveryReader, CancelTouchesNoOtherChannel) {
  const ScriptedFile file;
  const std::unique_ptr<ReadChannel> other = reader_->open_channel(ReadPriority::Demand);
  Batch mine(file, 50, 100);
  Batch theirs(file, 50, 100);
  channel_->submit(mine.requests);
  other->submit(theirs.requests);
  channel_->cancel();
  EXPECT_EQ(collect(*other).size(), 50u);
  EXPECT_TRUE(holds(theirs.memory, 0));
}

// What needs real threads: a gate shows what has started and what has not.
// Buffers come before the reader in each test, so that they outlive what is still in flight.

// Readers that have one read at a time in flight.
class OneAtATime : public testing::TestWithParam<Kind> {
 protected:
  SimulatedClock clock_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, OneAtATime,
                         testing::Values(Kind{"Threads",
                                              [](SimulatedClock&) { return threads(1); }},
                                         Kind{"Uring", [](SimulatedClock&) { return uring(1); }}),
                         [](const testing::TestParamInfo<Kind>& kind) { return kind.param.name; });

TEST_P(OneAtATime, StartsDemandBeforeTrunkBeforeHints) {
  GatedFile file;
  Batch first(file, 1, 1, 0), hints(file, 2, 1, 30), trunks(file, 2, 1, 20),
      demands(file, 2, 1, 10);
  const std::unique_ptr<Reader> reader = GetParam().make(clock_);
  const std::unique_ptr<ReadChannel> hint = reader->open_channel(ReadPriority::Hint);
  const std::unique_ptr<ReadChannel> trunk = reader->open_channel(ReadPriority::Trunk);
  const std::unique_ptr<ReadChannel> demand = reader->open_channel(ReadPriority::Demand);
  hint->submit(first.requests);
  file.started(1);  // the reader is busy, all others queue up behind
  hint->submit(hints.requests);
  trunk->submit(trunks.requests);
  demand->submit(demands.requests);
  file.let_finish(7);
  EXPECT_THAT(file.started(7), ElementsAre(0, 10, 11, 20, 21, 30, 31));
}

constexpr uint64_t kLargeHint = 5 * kHintPieceBytes / 2;  // in three pieces

TEST_P(OneAtATime, ADemandOvertakesTheRestOfALargeHint) {
  GatedFile file;
  Batch large(file, 1, kLargeHint, /*first_offset=*/100), urgent(file, 1, 10, 77);
  const std::unique_ptr<Reader> reader = GetParam().make(clock_);
  const std::unique_ptr<ReadChannel> hint = reader->open_channel(ReadPriority::Hint);
  const std::unique_ptr<ReadChannel> demand = reader->open_channel(ReadPriority::Demand);
  hint->submit(large.requests);
  file.started(1);
  demand->submit(urgent.requests);
  file.let_finish(4);
  EXPECT_TRUE(demand->wait()->status);
  EXPECT_TRUE(hint->wait()->status);
  EXPECT_THAT(file.started(0), ElementsAre(100, 77, kHintPieceBytes, 2 * kHintPieceBytes));
  EXPECT_TRUE(holds(large.memory, 100));
  EXPECT_EQ(reader->snapshot().reads, 2u);
  EXPECT_EQ(reader->snapshot().bytes, kLargeHint + 10);
}

TEST_P(OneAtATime, TheRestOfAStartedHintCanBeWithdrawn) {
  GatedFile file;
  Batch large(file, 1, kLargeHint), next(file, 1, 10, 77);
  const std::unique_ptr<Reader> reader = GetParam().make(clock_);
  const std::unique_ptr<ReadChannel> hint = reader->open_channel(ReadPriority::Hint);
  hint->submit(large.requests);
  file.started(1);
  file.let_finish(1);
  file.started(2);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    file.let_finish(1);
  });
  hint->cancel();
  opener.join();
  hint->submit(next.requests);
  file.let_finish(1);
  EXPECT_TRUE(hint->wait()->status);
  EXPECT_THAT(file.started(3), ElementsAre(0, kHintPieceBytes, 77));
  EXPECT_EQ(reader->snapshot().cancelled, 1u);
  EXPECT_EQ(reader->snapshot().reads, 1u);
}

TEST_P(OneAtATime, WithdrawingDoesNotWaitAndWhatWasOnItsWayStillCompletes) {
  GatedFile file;
  Batch large(file, 1, kLargeHint), small(file, 2, 10, 77);
  const std::unique_ptr<Reader> reader = GetParam().make(clock_);
  const std::unique_ptr<ReadChannel> started = reader->open_channel(ReadPriority::Hint);
  const std::unique_ptr<ReadChannel> waiting = reader->open_channel(ReadPriority::Hint);
  started->submit(large.requests);
  waiting->submit(small.requests);
  file.started(1);
  waiting->withdraw();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(waiting->poll()->status.error().code, ErrorCode::Cancelled);
  EXPECT_FALSE(waiting->wait());
  started->withdraw();  // the file is closed still
  EXPECT_FALSE(started->poll());
  EXPECT_EQ(started->outstanding(), 1u);
  waiting->submit(std::span(small.requests).first(1));
  file.let_finish(2);
  EXPECT_EQ(started->wait()->status.error().code, ErrorCode::Cancelled);
  waiting->withdraw();  // nothing is left to withdraw of it, or all
  waiting->wait();
  EXPECT_THAT(file.started(1), Not(Contains(kHintPieceBytes)));
  EXPECT_GE(reader->snapshot().cancelled, 3u);
}

TEST_P(EveryReader, WhatCannotBeWithdrawnAnyMoreCompletesAsEver) {
  const ScriptedFile file;
  Batch batch(file, 30, 100);
  channel_->submit(batch.requests);
  const std::optional<ReadCompletion> first = channel_->wait();
  EXPECT_TRUE(first->status);
  channel_->withdraw();
  EXPECT_EQ(channel_->outstanding(), 29u);
  size_t read = 1;
  std::set<uint64_t> tags = {first->tag};
  while (const std::optional<ReadCompletion> completion = channel_->wait()) {
    tags.insert(completion->tag);
    read += completion->status.has_value();
    EXPECT_TRUE(completion->status || completion->status.error().code == ErrorCode::Cancelled);
  }
  EXPECT_EQ(tags.size(), 30u);
  EXPECT_EQ(reader_->snapshot().reads, read);
  EXPECT_EQ(reader_->snapshot().cancelled, 30 - read);
}

TEST_P(EveryReader, OneBadPieceOfAHintIsOneError) {
  const ScriptedFile file([](uint64_t offset, size_t size) {
    return offset == kHintPieceBytes ? ScriptedFile::kError : int64_t(size);
  });
  Batch batch(file, 1, 4 * kHintPieceBytes);
  const std::unique_ptr<ReadChannel> hint = reader_->open_channel(ReadPriority::Hint);
  hint->submit(batch.requests);
  // The simulated reader reads a hint in one piece, which does not begin at the bad place.
  const bool has_pieces = std::string(reader_->name()) != "simulated";
  EXPECT_EQ(hint->wait()->status.has_value(), !has_pieces);
  EXPECT_FALSE(hint->wait());
  EXPECT_EQ(reader_->snapshot().failures, has_pieces ? 1u : 0u);
}

TEST(ThreadReader, TwoOwnersShareAReaderWithoutThreads) {
  const std::unique_ptr<Reader> reader = threads(0);
  const ScriptedFile file;
  const auto own = [&] {
    const std::unique_ptr<ReadChannel> channel = reader->open_channel(ReadPriority::Demand);
    for (int round = 0; round < 200; ++round) {
      Batch batch(file, 5, 100);
      channel->submit(batch.requests);
      EXPECT_EQ(collect(*channel).size(), 5u);
      EXPECT_TRUE(holds(batch.memory, 0));
    }
  };
  std::thread other(own);
  own();
  other.join();
}

TEST(ThreadReader, NeverHasMoreBytesInFlightThanItsBound) {
  GatedFile file;
  Batch batch(file, 4, 40);
  const std::unique_ptr<Reader> reader = threads(4, /*in_flight_bytes=*/100);
  const std::unique_ptr<ReadChannel> channel = reader->open_channel(ReadPriority::Demand);
  channel->submit(batch.requests);
  for (size_t finished = 0; finished < 4; ++finished) {
    // Two of 40 fit into 100, the third has to wait although two threads are idle.
    const size_t allowed = std::min<size_t>(finished + 2, 4);
    EXPECT_EQ(file.started(allowed).size(), allowed);
    file.let_finish(1);
    EXPECT_TRUE(channel->wait()->status);
  }
}

TEST(ThreadReader, ARequestLargerThanTheBoundRunsAlone) {
  GatedFile file;
  std::vector<std::byte> memory(1000);
  const std::unique_ptr<Reader> reader = threads(4, /*in_flight_bytes=*/100);
  const std::unique_ptr<ReadChannel> channel = reader->open_channel(ReadPriority::Demand);
  const std::span<std::byte> bytes(memory);
  const std::vector<ReadRequest> requests = {{&file, 1, bytes.first(10), 1},
                                             {&file, 2, bytes.subspan(10, 500), 2},
                                             {&file, 3, bytes.subspan(600, 10), 3}};
  channel->submit(requests);
  EXPECT_THAT(file.started(1), ElementsAre(1));
  file.let_finish(1);
  EXPECT_EQ(channel->wait()->tag, 1u);
  EXPECT_THAT(file.started(2), ElementsAre(1, 2));
  file.let_finish(1);
  EXPECT_EQ(channel->wait()->tag, 2u);
  EXPECT_THAT(file.started(3), ElementsAre(1, 2, 3));
  file.let_finish(1);
  EXPECT_EQ(channel->wait()->tag, 3u);
}

TEST(ThreadReader, AHintThatWouldFitDoesNotOvertakeAWaitingDemand) {
  GatedFile file;
  // The hint fits beside what is running, the demand does not, and the two do not fit together.
  Batch running(file, 1, 60, 0), waiting(file, 1, 70, 1000), small(file, 1, 35, 2000);
  const std::unique_ptr<Reader> reader = threads(4, /*in_flight_bytes=*/100);
  const std::unique_ptr<ReadChannel> demand = reader->open_channel(ReadPriority::Demand);
  const std::unique_ptr<ReadChannel> hint = reader->open_channel(ReadPriority::Hint);
  demand->submit(running.requests);
  file.started(1);
  demand->submit(waiting.requests);
  hint->submit(small.requests);
  file.let_finish(1);
  EXPECT_TRUE(demand->wait()->status);
  EXPECT_THAT(file.started(2), ElementsAre(0, 1000));
  file.let_finish(1);
  EXPECT_THAT(file.started(3), ElementsAre(0, 1000, 2000));
  file.let_finish(1);
}

TEST(ThreadReader, CancelWithdrawsWhatHasNotStartedAndWaitsForWhatHas) {
  GatedFile file;
  Batch batch(file, 10, 8);
  const std::unique_ptr<Reader> reader = threads(2);
  const std::unique_ptr<ReadChannel> channel = reader->open_channel(ReadPriority::Demand);
  channel->submit(batch.requests);
  file.started(2);
  // Opens the gate a while after the other eight are withdrawn: cancel() must withdraw before it
  // waits, and must not return before the gate opens.
  std::atomic<bool> returned = false;
  bool returned_early = false;
  std::thread opener([&] {
    while (reader->snapshot().cancelled < 8) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    returned_early = returned;
    file.let_finish(2);
  });
  channel->cancel();
  returned = true;
  opener.join();

  EXPECT_FALSE(returned_early);
  EXPECT_EQ(file.started(2).size(), 2u);
  EXPECT_EQ(reader->snapshot().cancelled, 8u);
  EXPECT_EQ(reader->snapshot().reads, 2u);
  EXPECT_EQ(channel->outstanding(), 0u);
  EXPECT_TRUE(holds(std::span(batch.memory).first(16), 0));  // waited for, so complete
}

TEST(ThreadReader, ADyingChannelLeavesNoReadBehind) {
  const std::unique_ptr<Reader> reader = threads(4);
  const ScriptedFile file;
  for (int round = 0; round < 200; ++round) {
    // The buffers die right behind their channel: a late write is a use after free (ASan, TSan).
    Batch batch(file, 20, 256);
    const std::unique_ptr<ReadChannel> channel = reader->open_channel(ReadPriority::Hint);
    channel->submit(batch.requests);
    for (int i = 0; i < round % 20; ++i) channel->wait();
  }
  const ReaderCounters counters = reader->snapshot();
  EXPECT_EQ(counters.reads + counters.cancelled, 4000u);
}

TEST(ThreadReader, WithdrawingALargeRequestLetsTheNextOneStart) {
  GatedFile file;
  Batch first(file, 1, 50, 0), second(file, 1, 90, 1000), third(file, 1, 10, 2000);
  const std::unique_ptr<Reader> reader = threads(2, /*in_flight_bytes=*/100);
  const std::unique_ptr<ReadChannel> running = reader->open_channel(ReadPriority::Demand);
  const std::unique_ptr<ReadChannel> large = reader->open_channel(ReadPriority::Demand);
  const std::unique_ptr<ReadChannel> small = reader->open_channel(ReadPriority::Demand);
  running->submit(first.requests);
  file.started(1);
  large->submit(second.requests);
  small->submit(third.requests);
  large->cancel();
  EXPECT_THAT(file.started(2), ElementsAre(0, 2000));
  file.let_finish(2);
}

TEST(ThreadReaderDeathTest, ClosingTheReaderBeforeItsChannelIsABug) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        std::unique_ptr<Reader> reader = threads(0);
        const std::unique_ptr<ReadChannel> channel = reader->open_channel(ReadPriority::Demand);
        reader.reset();
      },
      "channel_count_ == 0");
}

}  // namespace
}  // namespace deltafin::io
