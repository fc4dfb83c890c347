#include "memory/hint_trust.h"

#include <gtest/gtest.h>

namespace deltafin::memory {
namespace {

// Advice lists of 16 whose first `right` are right, `times` over.
void teach(HintTrust& trust, size_t right, int times, size_t count = 16) {
  for (int i = 0; i < times; ++i)
    for (size_t place = 0; place < count; ++place) trust.judge(place, count, place < right);
}

TEST(HintTrust, FollowsNothingBeforeItHasSeenAnything) {
  for (size_t place = 0; place < 16; ++place) EXPECT_FALSE(HintTrust().is_proven(place, 16));
}

TEST(HintTrust, LearnsWithinATokenOrTwo) {
  HintTrust trust;
  teach(trust, 16, HintTrust::kJudgementsLeast - 1);
  EXPECT_FALSE(trust.is_proven(0, 16));
  teach(trust, 16, 1);
  EXPECT_TRUE(trust.is_proven(0, 16));
}

TEST(HintTrust, LearnsWhichPlacesAreRight) {
  HintTrust trust;
  teach(trust, 6, 500);
  for (size_t place = 0; place < 16; ++place) EXPECT_EQ(trust.is_proven(place, 16), place < 6);
}

TEST(HintTrust, NoticesThatTimesHaveChanged) {
  HintTrust trust;
  teach(trust, 6, 5000);
  teach(trust, 2, 200);
  EXPECT_TRUE(trust.is_proven(1, 16));
  EXPECT_FALSE(trust.is_proven(2, 16));
}

TEST(HintTrust, AsksForThreeQuarters) {
  for (const int right_of_ten : {7, 8}) {
    HintTrust trust;
    for (int i = 0; i < 5000; ++i) trust.judge(0, 4, i * 3 % 10 < right_of_ten);
    EXPECT_EQ(trust.is_proven(0, 4), right_of_ten == 8) << right_of_ten;
  }
}

TEST(HintTrust, JudgesListsOfATokenAndOfAPromptApart) {
  HintTrust trust;
  teach(trust, 400, 500, 400);
  EXPECT_TRUE(trust.is_proven(399, 400));
  EXPECT_TRUE(trust.is_proven(299, 300));  // as long, roughly
  EXPECT_FALSE(trust.is_proven(0, 16));
}

TEST(HintTrust, KnowsListsOfAnyLength) {
  HintTrust trust;
  for (const size_t count : {size_t{1}, size_t{2}, size_t{3}, size_t{17}, size_t{100'000}}) {
    for (int i = 0; i < 1000; ++i) trust.judge(count - 1, count, true);
    EXPECT_TRUE(trust.is_proven(count - 1, count)) << count;
  }
}

}  // namespace
}  // namespace deltafin::memory
