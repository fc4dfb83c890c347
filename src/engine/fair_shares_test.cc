#include "engine/fair_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/philox.h"

namespace deltafin::engine {
namespace {

using std::chrono::nanoseconds;
using testing::ElementsAre;

// What becomes of the time while both have work.
struct Spent {
  nanoseconds decode{0}, prefill{0};
  uint64_t decode_passes = 0, layers = 0;
};

// `alone`: what a decode pass took before; 0: nobody knows.
Spent run(nanoseconds layer, nanoseconds decode_pass, nanoseconds until,
          nanoseconds alone = nanoseconds(0)) {
  SimulatedClock clock;
  TimeShares shares;
  if (alone.count() > 0)
    for (int i = 0; i < 50; ++i) shares.decode_took_alone(alone, 2);
  Spent run;
  while (clock.now() < until) {
    const nanoseconds start = clock.now();
    if (shares.decode_is_due()) {
      clock.advance(decode_pass);
      shares.decode_took(clock.now() - start, 2);
      run.decode += clock.now() - start;
      ++run.decode_passes;
    } else {
      clock.advance(layer);
      shares.prefill_took(clock.now() - start);
      run.prefill += clock.now() - start;
      ++run.layers;
    }
  }
  return run;
}

TEST(TimeShares, AnswersKeepHalfOfTheirRateHoweverLongALayerTakes) {
  for (const int64_t layer : {1, 7, 100, 333, 2'500}) {
    const Spent found = run(nanoseconds(layer), nanoseconds(100), nanoseconds(100'000));
    EXPECT_GE(found.decode_passes, 535u) << layer;
    EXPECT_LE(found.decode_passes, 565u) << layer;
    EXPECT_GE(found.prefill, nanoseconds(43'000)) << layer;
  }
}

// 100 alone, and 120 when a prompt has taken their experts out of memory: every 182, still.
TEST(TimeShares, WhatAPromptCostsAnswersInMemoryItPaysInTime) {
  const Spent found = run(nanoseconds(7), nanoseconds(120), nanoseconds(100'000), nanoseconds(100));
  EXPECT_GE(found.decode_passes, 535u);
  EXPECT_LE(found.decode_passes, 565u);
}

TEST(TimeShares, APromptGetsAThirdAtLeast) {
  const Spent found = run(nanoseconds(7), nanoseconds(500), nanoseconds(100'000), nanoseconds(100));
  EXPECT_GE(found.prefill, nanoseconds(33'000));
  EXPECT_LE(found.prefill, nanoseconds(34'000));
}

TEST(TimeShares, AnswersThatHaveBecomeFasterTakeNoMoreThanTheirShare) {
  const Spent found = run(nanoseconds(7), nanoseconds(50), nanoseconds(100'000), nanoseconds(100));
  EXPECT_GE(found.decode, nanoseconds(54'000));
  EXPECT_LE(found.decode, nanoseconds(56'000));
}

TEST(TimeShares, AnswersGoFirst) { EXPECT_TRUE(TimeShares().decode_is_due()); }

TEST(TimeShares, OnAClockThatStandsStillTheyTakeTurns) {
  TimeShares shares;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(shares.decode_is_due());
    shares.decode_took(nanoseconds(0), 1);
    EXPECT_FALSE(shares.decode_is_due());
    shares.prefill_took(nanoseconds(0));
  }
}

TEST(TimeShares, WhatOneTookAloneIsNotHeldAgainstIt) {
  TimeShares shares;
  shares.decode_took(nanoseconds(100), 1);
  for (int i = 0; i < 100; ++i) shares.decode_took_alone(nanoseconds(100), 1);
  EXPECT_TRUE(shares.decode_is_due());
  shares.decode_took(nanoseconds(10), 1);
  for (int i = 0; i < 100; ++i) shares.prefill_took(nanoseconds(100));
  shares.forget();
  shares.decode_took(nanoseconds(1), 1);
  EXPECT_FALSE(shares.decode_is_due());
}

TEST(ShareRows, PromptsThatFitGoTogether) {
  EXPECT_THAT(share_rows(std::vector<size_t>{512, 512, 512, 512}, 2048),
              ElementsAre(512, 512, 512, 512));
}

TEST(ShareRows, WhoCameFirstIsServedFirst) {
  EXPECT_THAT(share_rows(std::vector<size_t>{30, 90, 10}, 100), ElementsAre(30, 70, 0));
  EXPECT_THAT(share_rows(std::vector<size_t>{100, 1}, 100), ElementsAre(100, 0));
}

TEST(ShareRows, ALongPromptLeavesHalfToShortOnes) {
  EXPECT_THAT(share_rows(std::vector<size_t>{5000, 20}, 100), ElementsAre(80, 20));
  EXPECT_THAT(share_rows(std::vector<size_t>{5000, 60, 30, 25, 20}, 100),
              ElementsAre(50, 0, 30, 0, 20));
  EXPECT_THAT(share_rows(std::vector<size_t>{5000, 60}, 100), ElementsAre(100, 0));
  EXPECT_THAT(share_rows(std::vector<size_t>{2, 1}, 1), ElementsAre(1, 0));
}

TEST(ShareRows, NobodyGetsMoreThanHeWantsAndTheFirstGetsSomething) {
  Random random(1);
  for (int i = 0; i < 2'000; ++i) {
    std::vector<size_t> wanted(1 + random.below(6));
    for (size_t& count : wanted) count = 1 + random.below(200);
    const size_t rows = 1 + random.below(300);
    const std::vector<size_t> shares = share_rows(wanted, rows);
    size_t all_wanted = 0, all = 0;
    for (size_t k = 0; k < wanted.size(); ++k) {
      EXPECT_LE(shares[k], wanted[k]);
      all_wanted += wanted[k];
      all += shares[k];
    }
    EXPECT_GE(shares[0], std::min(wanted[0], (rows + 1) / 2));
    EXPECT_LE(all, rows);
    if (wanted[0] <= rows) {
      EXPECT_EQ(all, std::min(all_wanted, rows));
    }
  }
}

}  // namespace
}  // namespace deltafin::engine
