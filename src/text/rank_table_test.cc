#include "text/rank_table.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace deltafin::text {
namespace {

TEST(RankTable, FindsEachTokenByItsBytesAndItsRank) {
  constexpr size_t kCount = 10'000;
  RankTable table(kCount, kCount * 8);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(table.add(std::to_string(i * i)), std::nullopt);
  ASSERT_EQ(table.size(), kCount);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(table.find(std::to_string(i * i)), i);
    ASSERT_EQ(table.bytes(static_cast<Rank>(i)), std::to_string(i * i));
  }
  EXPECT_EQ(table.find("2"), std::nullopt);
  EXPECT_EQ(table.find(""), std::nullopt);
  EXPECT_EQ(table.find("longer than any token"), std::nullopt);
}

TEST(RankTable, TellsTheRankOfATokenThatIsThereAlready) {
  RankTable table(3, 10);
  EXPECT_EQ(table.add("a"), std::nullopt);
  EXPECT_EQ(table.add(std::string_view("a\0", 2)), std::nullopt);
  EXPECT_EQ(table.add(std::string_view("a\0", 2)), 1u);
  EXPECT_EQ(table.size(), 2u);
}

TEST(RankTable, ViewsOutliveAMoveOfTheTable) {
  RankTable table(1, 1);
  table.add("x");
  const std::string_view view = table.bytes(0);
  const RankTable moved = std::move(table);
  EXPECT_EQ(moved.bytes(0).data(), view.data());
}

}  // namespace
}  // namespace deltafin::text
