#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/philox.h"
#include "io/simulated.h"
#include "memory/expert_store.h"
#include "support/golden.h"

namespace deltafin::memory {
namespace {

using testing::HasSubstr;

constexpr uint32_t kLayer = 2, kRows = 5, kExpertsPerRow = 4;

// Stores over one checkpoint on a simulated disk, and runs of random rows through its experts.
class LocalExpertStoreTest : public testing::Test {
 protected:
  std::unique_ptr<ExpertStore> store(uint64_t slots, Hints hints = Hints::All) {
    return make_local_expert_store(checkpoint_, *reader_, team_, numerics::best_kernels(), clock_,
                                   {}, {.cache_bytes = slots * slot_bytes(), .hints = hints})
        .value();
  }
  uint64_t slot_bytes() {
    const std::unique_ptr<ExpertStore> smallest =
        make_local_expert_store(checkpoint_, *reader_, team_, numerics::best_kernels(), clock_, {},
                                {.cache_bytes = 1})
            .value();
    return smallest->snapshot().cache_bytes / smallest->snapshot().cache_slots;
  }
  uint32_t expert_count() const {
    return checkpoint_.contract().layers[kLayer].experts->expert_count;
  }

  // The same rows and edges for the same seed.
  Status run(ExpertStore& store, uint32_t layer, uint64_t seed, std::vector<float>* outputs,
             const std::function<void()>& meanwhile = {}) {
    const uint32_t width = checkpoint_.contract().layers[layer].experts->input_dim;
    Random random(seed);
    std::vector<float> rows(kRows * width);
    for (float& value : rows) value = float(random.below(2001)) / 1000 - 1;
    std::vector<ExpertEdge> edges;
    for (uint32_t row = 0; row < kRows; ++row)
      for (const uint32_t expert : experts_of(random))
        edges.push_back({.row = row, .expert = expert});
    outputs->assign(edges.size() * width, 0);
    needed_.clear();
    for (const ExpertEdge& edge : edges) needed_.insert(edge.expert);
    return store.run({.layer = layer, .edges = edges, .rows = rows.data(), .row_count = kRows},
                     *outputs, never_, meanwhile);
  }
  static uint32_t below(Random& random, uint32_t bound) { return uint32_t(random.below(bound)); }
  std::set<uint32_t> experts_of(Random& random) const {
    std::set<uint32_t> experts;
    while (experts.size() < kExpertsPerRow) experts.insert(below(random, expert_count()));
    return experts;
  }
  static void expect_equal(const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  }

  io::PosixStorage real_;
  io::SimulatedStorage storage_{real_};
  SimulatedClock clock_;
  std::unique_ptr<io::Reader> reader_ = io::make_simulated_reader({.seed = 8}, clock_);
  ThreadTeam team_{2};
  const CancelToken never_;
  checkpoint::Checkpoint checkpoint_ =
      checkpoint::Checkpoint::open(storage_, test::golden_path("tiny-k3")).value();
  std::set<uint32_t> needed_;  // by the last run
};

TEST_F(LocalExpertStoreTest, ReadsEachNeededExpertOnceWithTheSmallestCache) {
  const std::unique_ptr<ExpertStore> small = store(2);
  std::vector<float> outputs;
  ASSERT_TRUE(run(*small, kLayer, 1, &outputs));
  const ExpertCounters counters = small->snapshot();
  ASSERT_GT(needed_.size(), kExpertsPerRow);
  EXPECT_EQ(counters.experts_used, needed_.size());
  EXPECT_EQ(counters.misses, needed_.size());
  EXPECT_EQ(counters.layers[kLayer].misses, needed_.size());
  EXPECT_EQ(reader_->snapshot().bytes, counters.bytes_read);
}

TEST_F(LocalExpertStoreTest, CallsForOtherWorkOnceWhileItReadsAndWhenNothingIsRead) {
  const std::unique_ptr<ExpertStore> large = store(1000);
  std::vector<float> outputs;
  int calls = 0;
  uint64_t reads = 0;
  const auto meanwhile = [&] {
    ++calls;
    reads = reader_->snapshot().reads;
  };
  ASSERT_TRUE(run(*large, kLayer, 1, &outputs, meanwhile));
  EXPECT_EQ(calls, 1);
  EXPECT_LT(reads, needed_.size());
  ASSERT_TRUE(run(*large, kLayer, 1, &outputs, meanwhile));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(large->snapshot().misses, needed_.size());
}

TEST_F(LocalExpertStoreTest, WhatWasExpectedIsThereOrOnItsWay) {
  const std::unique_ptr<ExpertStore> hinted = store(50);
  std::vector<float> plain, ahead;
  ASSERT_TRUE(run(*store(50, Hints::None), kLayer + 1, 7, &plain));
  const std::vector<uint32_t> next(needed_.begin(), needed_.end());
  ASSERT_TRUE(run(*hinted, kLayer, 3, &ahead, [&] { hinted->expect(kLayer + 1, next); }));
  EXPECT_GT(hinted->snapshot().hints, 0u);
  const uint64_t misses = hinted->snapshot().misses;
  ASSERT_TRUE(run(*hinted, kLayer + 1, 7, &ahead));
  expect_equal(plain, ahead);
  const ExpertCounters counters = hinted->snapshot();
  EXPECT_EQ(counters.hints, next.size());
  EXPECT_EQ(counters.hints_used, next.size());
  EXPECT_EQ(counters.misses, misses);
  EXPECT_EQ(counters.wasted_bytes, 0u);
}

TEST_F(LocalExpertStoreTest, FollowsAdviceThatHasProvenRight) {
  const std::unique_ptr<ExpertStore> hinted = store(9, Hints::Proven);
  const std::unique_ptr<ExpertStore> plain = store(9, Hints::None);
  uint64_t hints = 0;
  std::vector<float> outputs;
  const auto advise = [&](uint64_t seed, bool rightly) {
    ASSERT_TRUE(run(*plain, kLayer, seed, &outputs));  // only to see what is needed
    std::vector<uint32_t> right(needed_.begin(), needed_.end()), wrong;
    for (uint32_t expert = 0; wrong.size() < right.size(); ++expert)
      if (!needed_.contains(expert % expert_count())) wrong.push_back(expert % expert_count());
    hints = hinted->snapshot().hints;
    hinted->expect(kLayer, rightly ? right : wrong);
    hints = hinted->snapshot().hints - hints;
    ASSERT_TRUE(run(*hinted, kLayer, seed, &outputs));
  };
  advise(0, true);
  EXPECT_EQ(hints, 0u);  // whoever knows nothing of it does not follow it
  for (uint64_t seed = 1; seed < 100; ++seed) advise(seed, true);
  EXPECT_GT(hints, 0u);
  for (uint64_t seed = 0; seed < 1000; ++seed) advise(seed, false);
  EXPECT_EQ(hints, 0u);
}

TEST_F(LocalExpertStoreTest, ARunDoesNotWaitForAdviceThatItDoesNotNeed) {
  // All that it asks of the disk, two polls, takes less time than the read does.
  constexpr std::chrono::milliseconds kDelay(5);
  reader_ = io::make_simulated_reader({.delay_min = kDelay, .delay_max = kDelay}, clock_);
  const std::unique_ptr<ExpertStore> hinted = store(50);
  std::vector<float> expected, found;
  ASSERT_TRUE(run(*hinted, kLayer, 3, &expected));
  uint32_t unneeded = 0;
  while (needed_.contains(unneeded)) ++unneeded;
  hinted->expect(kLayer, std::vector{unneeded});
  const uint64_t reads = reader_->snapshot().reads;
  ASSERT_TRUE(run(*hinted, kLayer, 3, &found));
  expect_equal(expected, found);
  EXPECT_EQ(reader_->snapshot().reads, reads);
  // It comes later, whole, as it had started, and is there for whoever needs it.
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(run(*hinted, kLayer, 3, &found));
  EXPECT_EQ(reader_->snapshot().reads, reads + 1);
  EXPECT_GT(hinted->snapshot().hint_bytes, 0u);
}

TEST_F(LocalExpertStoreTest, SlotsOfAdviceThatHadNotBegunAreFreeAtOnce) {
  reader_ = io::make_simulated_reader({.in_flight_count = 1}, clock_);
  const std::unique_ptr<ExpertStore> smallest = store(2);
  std::vector<float> expected, found;
  ASSERT_TRUE(run(*store(50, Hints::None), kLayer, 3, &expected));
  std::vector<uint32_t> unneeded;
  for (uint32_t expert = 0; unneeded.size() < 2; ++expert)
    if (!needed_.contains(expert)) unneeded.push_back(expert);
  smallest->expect(kLayer, unneeded);  // one on its way, one waits
  uint64_t begun = 0;
  ASSERT_TRUE(run(*smallest, kLayer, 3, &found, [&] { begun = smallest->snapshot().misses; }));
  EXPECT_EQ(begun, 1u);
  expect_equal(expected, found);
}

// Whatever it is told, the store computes what is asked for.
TEST_F(LocalExpertStoreTest, AdviceOfAnEnemyChangesNothingButTime) {
  const std::unique_ptr<ExpertStore> plain = store(9, Hints::None);
  for (const uint64_t slots : {2u, 9u, 40u}) {
    const std::unique_ptr<ExpertStore> misled = store(slots);
    Random random(slots);
    const auto mislead = [&] {
      std::vector<uint32_t> experts;
      for (uint32_t i = below(random, 40); i > 0; --i)
        experts.push_back(below(random, expert_count()));  // also twice, also needed ones
      misled->expect(1 + below(random, uint32_t(checkpoint_.contract().layers.size()) - 1),
                     experts);
    };
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const uint32_t layer = 1 + uint32_t(seed) % 4;
      std::vector<float> expected, found;
      ASSERT_TRUE(run(*plain, layer, seed, &expected));
      if (seed % 3 == 0) mislead();
      ASSERT_TRUE(run(*misled, layer, seed, &found, mislead));
      expect_equal(expected, found);
    }
    const ExpertCounters counters = misled->snapshot();
    EXPECT_EQ(counters.hits + counters.misses, counters.experts_used);
    if (slots > 2) {
      EXPECT_GT(counters.hints, counters.hints_used);
      EXPECT_GT(counters.hints_used, 0u);
    }
  }
}

TEST_F(LocalExpertStoreTest, AdviceThatCannotBeReadIsAnErrorOnlyOfWhoNeedsIt) {
  const std::unique_ptr<ExpertStore> hinted = store(50);
  std::vector<float> outputs, expected;
  ASSERT_TRUE(run(*store(50, Hints::None), kLayer, 3, &expected));
  std::vector<uint32_t> all(expert_count());
  for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  storage_.set_faults(
      {.seed = 1, .eio_probability = 1, .random_duration = io::FaultDuration::Permanent});
  hinted->expect(kLayer, all);
  EXPECT_FALSE(run(*hinted, kLayer, 3, &outputs));
  hinted->expect(kLayer, all);
  storage_.set_faults({});
  ASSERT_TRUE(run(*hinted, kLayer, 3, &outputs));
  expect_equal(outputs, expected);
}

TEST_F(LocalExpertStoreTest, GivesMemoryBackAndComputesTheSameWithLess) {
  const std::unique_ptr<ExpertStore> shrinking = store(40);
  std::vector<float> expected, found;
  ASSERT_TRUE(run(*store(40), kLayer, 3, &expected));
  ASSERT_TRUE(run(*shrinking, kLayer, 3, &found));
  EXPECT_EQ(shrinking->give_back(), 6 * slot_bytes());
  uint64_t given_back = 6 * slot_bytes();
  while (const uint64_t bytes = shrinking->give_back()) {
    given_back += bytes;
    ASSERT_TRUE(run(*shrinking, kLayer, 3, &found));
    expect_equal(expected, found);
  }
  EXPECT_EQ(given_back, (40 - kExpertsPerRow) * slot_bytes());
  EXPECT_EQ(shrinking->snapshot().given_back_bytes, given_back);
  shrinking->expect(kLayer, std::vector<uint32_t>{1, 2, 3});
  ASSERT_TRUE(run(*shrinking, kLayer, 3, &found));
  expect_equal(expected, found);
}

TEST_F(LocalExpertStoreTest, WithRoomForAllWantsNoAdvice) {
  EXPECT_FALSE(store(100'000)->wants_hints(kLayer));
  EXPECT_FALSE(store(9, Hints::None)->wants_hints(kLayer));
  EXPECT_FALSE(store(9)->wants_hints(0));  // a dense layer
  EXPECT_TRUE(store(9)->wants_hints(kLayer));
}

}  // namespace
}  // namespace deltafin::memory
