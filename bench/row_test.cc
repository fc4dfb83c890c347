#include "row.h"

#include <gtest/gtest.h>

#include <vector>

namespace deltafin::bench {
namespace {

TEST(BenchRow, TakesTheMedianOfEachField) {
  const std::vector<Repetition> repetitions = {
      {.seconds = 3, .bytes = 10, .flop = 1, .read_roof = 40, .fma_roof = 100},
      {.seconds = 1, .bytes = 30, .flop = 9, .read_roof = 20, .fma_roof = 300},
      {.seconds = 90, .bytes = 20, .flop = 2, .read_roof = 50, .fma_roof = 200}};
  const Row row = make_row("product", repetitions);
  EXPECT_EQ(row.name, "product");
  EXPECT_EQ(row.repetitions, 3u);
  EXPECT_EQ(row.median.seconds, 3);
  EXPECT_EQ(row.median.bytes, 20);
  EXPECT_EQ(row.median.flop, 2);
  EXPECT_EQ(row.median.read_roof, 40);
  EXPECT_EQ(row.median.fma_roof, 200);
}

TEST(BenchRow, TakesTheMiddleOfAnEvenNumberOfRepetitions) {
  const std::vector<Repetition> repetitions = {
      {.seconds = 4}, {.seconds = 1}, {.seconds = 2}, {.seconds = 9}};
  EXPECT_EQ(make_row("", repetitions).median.seconds, 3);
}

TEST(BenchRow, IsJudgedByTheNearerRoof) {
  const Repetition slow_memory{
      .seconds = 1, .bytes = 9, .flop = 20, .read_roof = 10, .fma_roof = 100};
  const Row by_memory = make_row("", {&slow_memory, 1});
  EXPECT_EQ(by_memory.bound, "ram");
  EXPECT_DOUBLE_EQ(by_memory.ratio, 0.9);

  const Repetition slow_arithmetic{
      .seconds = 1, .bytes = 1, .flop = 70, .read_roof = 10, .fma_roof = 100};
  const Row by_arithmetic = make_row("", {&slow_arithmetic, 1});
  EXPECT_EQ(by_arithmetic.bound, "fma");
  EXPECT_DOUBLE_EQ(by_arithmetic.ratio, 0.7);
}

TEST(BenchRow, WithoutARoofHasNoRatio) {
  const Repetition alone{.seconds = 1, .bytes = 9, .flop = 20};
  EXPECT_EQ(make_row("", {&alone, 1}).ratio, 0);
}

}  // namespace
}  // namespace deltafin::bench
