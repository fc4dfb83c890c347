#include "io/simulated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <set>

namespace deltafin::io {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::vector<std::byte> numbered(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = std::byte(i);
  return bytes;
}

// What one read did: its text, or its error.
std::string try_read(const File& file, uint64_t offset, size_t size) {
  std::string text(size, '?');
  const Result<size_t> got = file.read_at(offset, std::as_writable_bytes(std::span(text)));
  return got ? text.substr(0, *got) : got.error().what;
}

std::string names_in(const Storage& storage, const std::string& path) {
  const Result<std::vector<DirectoryEntry>> entries = storage.list(path);
  if (!entries) return entries.error().what;
  std::string text;
  for (const DirectoryEntry& entry : *entries)
    text += entry.name + (entry.is_directory ? "/ " : " ");
  return text;
}

TEST(SimulatedStorage, HoldsFilesInMemory) {
  SimulatedStorage storage;
  storage.add_file("/m/config.json", "{}");
  storage.add_file("/m/blobs/a", "abcdef");
  EXPECT_TRUE(storage.exists("/m/config.json"));
  EXPECT_FALSE(storage.exists("/m/other"));
  EXPECT_TRUE(storage.is_directory("/m"));
  EXPECT_TRUE(storage.is_directory("/m/blobs"));
  EXPECT_FALSE(storage.is_directory("/m/config.json"));
  EXPECT_EQ(names_in(storage, "/m"), "blobs/ config.json ");
  EXPECT_EQ(names_in(storage, "/m/blobs/"), "a ");
  EXPECT_THAT(names_in(storage, "/gone"), HasSubstr("/gone: cannot list"));

  const std::unique_ptr<File> file = storage.open("/m/blobs/a").value();
  EXPECT_EQ(file->path(), "/m/blobs/a");
  EXPECT_EQ(file->size(), 6u);
  EXPECT_EQ(try_read(*file, 2, 3), "cde");
  EXPECT_EQ(try_read(*file, 4, 10), "ef");
  EXPECT_EQ(try_read(*file, 6, 10), "");
}

TEST(SimulatedStorage, RefusesWhatTheRealOneRefuses) {
  SimulatedStorage storage;
  storage.add_file("/m/f", "x");
  EXPECT_THAT(storage.open("/m").error().what, HasSubstr("not a regular file but a directory"));
  EXPECT_THAT(storage.open("/m/g").error().what,
              AllOf(HasSubstr("/m/g: cannot open"), HasSubstr("No such file")));
  EXPECT_EQ(storage.open("/m/g").error().code, ErrorCode::Io);
}

TEST(SimulatedStorage, ShowsTheStorageBelowUnlessAFileHidesIt) {
  SimulatedStorage below;
  below.add_file("/m/a", "below a");
  below.add_file("/m/b", "below b");
  SimulatedStorage storage(static_cast<const Storage&>(below));
  storage.add_file("/m/b", "mine");
  storage.add_file("/m/c", "mine too");
  EXPECT_EQ(names_in(storage, "/m"), "a b c ");
  EXPECT_EQ(read_text(storage, "/m/a", 100).value(), "below a");
  EXPECT_EQ(read_text(storage, "/m/b", 100).value(), "mine");
  EXPECT_EQ(read_text(below, "/m/b", 100).value(), "below b");
  EXPECT_FALSE(storage.exists("/m/d"));
}

TEST(SimulatedStorage, ShowsTheRealDisk) {
  const PosixStorage posix;
  const SimulatedStorage storage(posix);
  const std::string folder = std::string(DELTAFIN_SOURCE_DIR) + "/src/io";
  EXPECT_TRUE(storage.is_directory(folder));
  EXPECT_THAT(names_in(storage, folder), HasSubstr(" reader.h "));
  EXPECT_EQ(read_text(storage, folder + "/reader.h", 1 << 20).value(),
            read_text(posix, folder + "/reader.h", 1 << 20).value());
}

TEST(SimulatedStorage, AFileOutlivesTheStorage) {
  std::unique_ptr<File> file;
  {
    SimulatedStorage storage;
    storage.add_file("/f", "abc");
    file = storage.open("/f").value();
  }
  EXPECT_EQ(try_read(*file, 0, 3), "abc");
}

TEST(SimulatedFaults, AnEioRangeFailsReadsThatTouchItAndNoOthers) {
  SimulatedStorage storage;
  storage.add_file("/m/f", "0123456789");
  storage.add_file("/m/g", "0123456789");
  const std::unique_ptr<File> file = storage.open("/m/f").value();
  storage.set_faults(
      {.ranges = {{.file = "f", .offset = 4, .size = 2}}});  // files open already too
  EXPECT_EQ(try_read(*file, 0, 4), "0123");
  EXPECT_EQ(try_read(*file, 6, 4), "6789");
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(try_read(*file, 3, 2), AllOf(HasSubstr("/m/f"), HasSubstr("2 bytes at offset 3"),
                                             HasSubstr("Input/output error")));
  EXPECT_EQ(try_read(*storage.open("/m/g").value(), 0, 10), "0123456789");
  EXPECT_EQ(storage.snapshot().faults, 3u);
  EXPECT_EQ(storage.snapshot().reads, 6u);

  storage.set_faults({});
  EXPECT_EQ(try_read(*file, 3, 2), "34");
}

TEST(SimulatedFaults, MatchesWholeNamesOnly) {
  SimulatedStorage storage;
  storage.add_file("/m/model.bin", "a");
  storage.add_file("/m/other-model.bin", "b");
  storage.set_faults({.ranges = {{.file = "model.bin", .size = 1}}});
  EXPECT_THAT(try_read(*storage.open("/m/model.bin").value(), 0, 1), HasSubstr("error"));
  EXPECT_EQ(try_read(*storage.open("/m/other-model.bin").value(), 0, 1), "b");
}

TEST(SimulatedFaults, ATransientRangeSucceedsOnTheNextTry) {
  for (const FaultKind kind : {FaultKind::Eio, FaultKind::ShortRead}) {
    SimulatedStorage storage;
    storage.add_file("/f", "0123456789");
    storage.set_faults({.ranges = {{.file = "f",
                                    .offset = 4,
                                    .size = 2,
                                    .kind = kind,
                                    .duration = FaultDuration::Transient}}});
    std::string text(10, '?');
    const std::unique_ptr<File> file = storage.open("/f").value();
    EXPECT_TRUE(read_exactly(*file, 0, std::as_writable_bytes(std::span(text))));
    EXPECT_EQ(text, "0123456789");
    EXPECT_EQ(storage.snapshot().faults, 1u);
    EXPECT_EQ(storage.snapshot().reads, 2u);
    EXPECT_NE(try_read(*file, 0, 10), "0123456789");  // a later visit meets it again
  }
}

TEST(SimulatedFaults, AShortRangeStopsReadsWhereItBegins) {
  SimulatedStorage storage;
  storage.add_file("/f", "0123456789");
  storage.set_faults(
      {.ranges = {{.file = "f", .offset = 4, .size = 2, .kind = FaultKind::ShortRead}}});
  const std::unique_ptr<File> file = storage.open("/f").value();
  EXPECT_EQ(try_read(*file, 0, 10), "0123");
  EXPECT_EQ(try_read(*file, 4, 6), "");
  std::string text(10, '?');
  const Status status = read_exactly(*file, 0, std::as_writable_bytes(std::span(text)));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("/f: expected 10 bytes at offset 0, got 4"));
}

TEST(SimulatedFaults, ATruncatedFileKeepsTheSizeItWasOpenedWith) {
  SimulatedStorage storage;
  storage.add_file("/f", "0123456789");
  const std::unique_ptr<File> file = storage.open("/f").value();
  storage.set_faults({.truncations = {{.file = "f", .size = 3}}});
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(try_read(*file, 0, 10), "012");
  EXPECT_EQ(try_read(*file, 3, 1), "");
  EXPECT_EQ(try_read(*file, 8, 1), "");
}

// The outcome of reading every offset of a file a few times.
std::string outcomes(const FaultPlan& plan, const std::string& path) {
  SimulatedStorage storage;
  storage.add_file(path, numbered(256));
  storage.set_faults(plan);
  const std::unique_ptr<File> file = storage.open(path).value();
  std::string text;
  for (int round = 0; round < 4; ++round) {
    for (uint64_t offset = 0; offset < 200; ++offset) {
      std::byte buffer[32];
      const Result<size_t> got = file->read_at(offset, buffer);
      text += got ? std::to_string(*got) + " " : "error ";
    }
  }
  return text;
}

TEST(SimulatedFaults, RandomFaultsFollowFromSeedFileNameAndOffset) {
  FaultPlan plan{.seed = 1, .eio_probability = 0.1f, .short_read_probability = 0.1f};
  const std::string first = outcomes(plan, "/here/f");
  EXPECT_EQ(outcomes(plan, "/here/f"), first);
  EXPECT_EQ(outcomes(plan, "/elsewhere/f"), first);
  EXPECT_NE(outcomes(plan, "/here/g"), first);
  plan.seed = 2;
  EXPECT_NE(outcomes(plan, "/here/f"), first);
}

TEST(SimulatedFaults, RandomFaultsComeAboutAsOftenAsAsked) {
  SimulatedStorage storage;
  storage.add_file("/f", numbered(100'000));
  storage.set_faults({.seed = 3, .eio_probability = 0.25f});
  const std::unique_ptr<File> file = storage.open("/f").value();
  for (uint64_t offset = 0; offset < 4000; ++offset) try_read(*file, offset * 10, 1);
  EXPECT_GT(storage.snapshot().faults, 850u);
  EXPECT_LT(storage.snapshot().faults, 1150u);
}

TEST(SimulatedFaults, ATransientRandomFaultNeverOutlivesTheRetry) {
  SimulatedStorage storage;
  storage.add_file("/f", numbered(10'000));
  storage.set_faults({.seed = 4, .eio_probability = 0.5f, .short_read_probability = 0.5f});
  const std::unique_ptr<File> file = storage.open("/f").value();
  for (int round = 0; round < 4; ++round) {
    for (uint64_t offset = 0; offset < 1000; ++offset) {
      std::byte buffer[7];
      EXPECT_TRUE(read_exactly(*file, offset * 10, buffer)) << offset;
    }
  }
  EXPECT_GT(storage.snapshot().faults, 1000u);
}

TEST(SimulatedFaults, APermanentRandomFaultStays) {
  for (const auto& [eio, cut] : {std::pair(0.3f, 0.0f), std::pair(0.0f, 0.3f)}) {
    SimulatedStorage storage;
    storage.add_file("/f", numbered(10'000));
    storage.set_faults({.seed = 5,
                        .eio_probability = eio,
                        .short_read_probability = cut,
                        .random_duration = FaultDuration::Permanent});
    const std::unique_ptr<File> file = storage.open("/f").value();
    size_t failed_count = 0;
    for (uint64_t offset = 0; offset < 1000; ++offset) {
      std::byte buffer[7];
      const bool first = read_exactly(*file, offset * 10, buffer).has_value();
      EXPECT_EQ(read_exactly(*file, offset * 10, buffer).has_value(), first);
      failed_count += first ? 0 : 1;
    }
    EXPECT_GT(failed_count, 200u);
    EXPECT_LT(failed_count, 400u);
  }
}

// One simulated run: the tags in the order of their completion and the time it took.
struct Transcript {
  std::vector<uint64_t> tags;
  std::chrono::nanoseconds time{0};
  bool operator==(const Transcript&) const = default;
};

Transcript run(const SimulatedReaderOptions& options, size_t count) {
  SimulatedStorage storage;
  storage.add_file("/f", numbered(100));
  const std::unique_ptr<File> file = storage.open("/f").value();
  SimulatedClock clock;
  const std::unique_ptr<Reader> reader = make_simulated_reader(options, clock);
  const std::unique_ptr<ReadChannel> channel = reader->open_channel(ReadPriority::Demand);
  std::vector<std::byte> memory(count);
  std::vector<ReadRequest> requests;
  for (size_t i = 0; i < count; ++i)
    requests.push_back({file.get(), i, std::span(memory).subspan(i, 1), i});
  channel->submit(requests);
  Transcript result;
  while (const std::optional<ReadCompletion> completion = channel->wait())
    result.tags.push_back(completion->tag);
  result.time = clock.now();
  return result;
}

TEST(SimulatedReader, OrderAndTimesFollowFromTheSeed) {
  const Transcript first = run({.seed = 1}, 50);
  EXPECT_EQ(run({.seed = 1}, 50), first);
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t seed = 0; seed < 10; ++seed) orders.insert(run({.seed = seed}, 50).tags);
  EXPECT_EQ(orders.size(), 10u);
}

TEST(SimulatedReader, CompletesOutOfOrder) {
  std::vector<uint64_t> rising(50);
  std::iota(rising.begin(), rising.end(), 0u);
  const Transcript first = run({.seed = 1}, 50);
  EXPECT_NE(first.tags, rising);
  EXPECT_THAT(first.tags, testing::UnorderedElementsAreArray(rising));
}

TEST(SimulatedReader, TakesTheTimeOfItsDelays) {
  using std::chrono::milliseconds;
  const auto time = [](size_t in_flight_count) {
    return run({.delay_min = milliseconds(2),
                .delay_max = milliseconds(2),
                .in_flight_count = in_flight_count},
               12)
        .time;
  };
  EXPECT_EQ(time(1), milliseconds(24));
  EXPECT_EQ(time(4), milliseconds(6));
}

// Requests on three channels of one reader, with room for one in flight.
class SimulatedPriorities : public testing::Test {
 protected:
  SimulatedPriorities() {
    storage_.add_file("/f", numbered(1000));
    file_ = storage_.open("/f").value();
  }
  ReadRequest request(uint64_t tag, size_t size = 1) {
    memory_.emplace_back(size);
    return {file_.get(), tag, memory_.back(), tag};
  }

  SimulatedStorage storage_;
  std::unique_ptr<File> file_;
  std::vector<std::vector<std::byte>> memory_;
  SimulatedClock clock_;
  std::unique_ptr<Reader> reader_ =
      make_simulated_reader({.in_flight_count = 1, .in_flight_bytes = 100}, clock_);
};

TEST_F(SimulatedPriorities, DemandOvertakesQueuedHints) {
  const std::unique_ptr<ReadChannel> hint = reader_->open_channel(ReadPriority::Hint);
  const std::unique_ptr<ReadChannel> demand = reader_->open_channel(ReadPriority::Demand);
  const std::vector<ReadRequest> hints = {request(1), request(2), request(3)};
  const std::vector<ReadRequest> demands = {request(4)};
  hint->submit(hints);
  demand->submit(demands);
  EXPECT_EQ(demand->wait()->tag, 4u);
  EXPECT_EQ(reader_->snapshot().reads, 2u);  // the hint that was under way, and the demand
}

TEST_F(SimulatedPriorities, BuffersHoldNansUntilTheCompletion) {
  const std::unique_ptr<ReadChannel> channel = reader_->open_channel(ReadPriority::Demand);
  const std::vector<ReadRequest> requests = {request(5, 4)};
  channel->submit(requests);
  EXPECT_THAT(memory_[0], testing::Each(std::byte{0xFF}));
  channel->wait();
  EXPECT_THAT(memory_[0], ElementsAre(std::byte{5}, std::byte{6}, std::byte{7}, std::byte{8}));
}

TEST_F(SimulatedPriorities, AFailedReadCarriesItsErrorAndLeavesNans) {
  storage_.set_faults({.ranges = {{.file = "f", .offset = 6, .size = 1}}});
  const std::unique_ptr<ReadChannel> channel = reader_->open_channel(ReadPriority::Demand);
  const std::vector<ReadRequest> requests = {request(5, 4)};
  channel->submit(requests);
  const std::optional<ReadCompletion> completion = channel->wait();
  ASSERT_FALSE(completion->status);
  EXPECT_THAT(completion->status.error().what,
              AllOf(HasSubstr("/f"), HasSubstr("4 bytes at offset 5")));
  EXPECT_THAT(memory_[0], testing::Each(std::byte{0xFF}));
  EXPECT_EQ(reader_->snapshot().retries, 1u);
}

TEST_F(SimulatedPriorities, CancelFinishesWhatHasStartedAndWithdrawsTheRest) {
  const std::unique_ptr<ReadChannel> channel = reader_->open_channel(ReadPriority::Demand);
  const std::vector<ReadRequest> requests = {request(1), request(2), request(3)};
  channel->submit(requests);
  channel->cancel();
  EXPECT_EQ(reader_->snapshot().reads, 1u);
  EXPECT_EQ(reader_->snapshot().cancelled, 2u);
  EXPECT_EQ(memory_[0][0], std::byte{1});
  EXPECT_EQ(memory_[1][0], std::byte{0});
  EXPECT_FALSE(channel->wait());
}

TEST_F(SimulatedPriorities, PollingLetsTimePass) {
  const std::unique_ptr<ReadChannel> channel = reader_->open_channel(ReadPriority::Demand);
  std::vector<ReadRequest> requests;
  for (uint64_t tag = 0; tag < 20; ++tag) requests.push_back(request(tag));
  channel->submit(requests);
  size_t empty_count = 0;
  while (channel->outstanding() > 0)
    if (!channel->poll()) ++empty_count;
  EXPECT_GT(empty_count, 0u);  // the caller meets both answers
  EXPECT_GT(clock_.now().count(), 0);
}

}  // namespace
}  // namespace deltafin::io
