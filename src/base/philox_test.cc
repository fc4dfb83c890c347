#include "base/philox.h"

#include <gtest/gtest.h>

#include <vector>

namespace deltafin {
namespace {

using Block = std::array<uint32_t, 4>;

// The known-answer vectors that the authors publish with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StartsWithTheBlockOfCounterZero) {
  Random random(0);
  EXPECT_EQ(random.next_u32(), 0x6627e8d5u);
  EXPECT_EQ(random.next_u32(), 0xe169c58du);
  EXPECT_EQ(random.next_u32(), 0xbc57ac4cu);
  EXPECT_EQ(random.next_u32(), 0x9b00dbd8u);
  EXPECT_EQ(random.next_u32(), philox4x32({1, 0, 0, 0}, {0, 0})[0]);
}

TEST(Random, TakesTheHighHalfFirstWithEveryCompiler) {
  EXPECT_EQ(Random(0).next_u64(), 0x6627e8d5'e169c58du);
}

TEST(Random, UsesAllBitsOfTheSeed) {
  const uint64_t low = Random(1).next_u64();
  EXPECT_NE(Random(1ull << 32).next_u64(), low);
  EXPECT_NE(Random(1ull << 32 | 1).next_u64(), low);
  EXPECT_EQ(Random(1).next_u64(), low);
}

TEST(Random, StaysBelowItsBoundAndReachesEveryValue) {
  Random random(5);
  std::vector<int> counts(7);
  for (int i = 0; i < 7000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) {
    EXPECT_GT(count, 850);
    EXPECT_LT(count, 1150);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0u);
  EXPECT_GT(random.below(UINT64_MAX), 1ull << 32);
}

TEST(Random, UniformFillsTheUnitIntervalButNotItsEnd) {
  Random random(6);
  float sum = 0, smallest = 1, largest = 0;
  for (int i = 0; i < 10'000; ++i) {
    const float value = random.uniform();
    sum += value;
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  EXPECT_NEAR(sum / 10'000, 0.5f, 0.02f);
  EXPECT_GE(smallest, 0.0f);
  EXPECT_LT(smallest, 0.01f);
  EXPECT_LT(largest, 1.0f);
  EXPECT_GT(largest, 0.99f);
}

TEST(RandomDeathTest, ABoundOfZeroIsABug) { EXPECT_DEATH(Random(1).below(0), "bound > 0"); }

}  // namespace
}  // namespace deltafin
