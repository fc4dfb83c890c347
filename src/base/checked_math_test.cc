#include "base/checked_math.h"

#include <gtest/gtest.h>

#include <vector>

namespace deltafin {
namespace {

TEST(CheckedMath, AddsUpToTheLastValueAndNotBeyond) {
  EXPECT_EQ(checked_add(2, 3), 5u);
  EXPECT_EQ(checked_add(UINT64_MAX, 0), UINT64_MAX);
  EXPECT_EQ(checked_add(UINT64_MAX - 1, 1), UINT64_MAX);
  EXPECT_EQ(checked_add(UINT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_add(1ull << 63, 1ull << 63), std::nullopt);
}

TEST(CheckedMath, MultipliesUpToTheLastValueAndNotBeyond) {
  EXPECT_EQ(checked_multiply(6, 7), 42u);
  EXPECT_EQ(checked_multiply(UINT64_MAX, 1), UINT64_MAX);
  EXPECT_EQ(checked_multiply(UINT64_MAX, 0), 0u);
  EXPECT_EQ(checked_multiply(0xFFFFFFFFull, 0x100000001ull), UINT64_MAX);
  EXPECT_EQ(checked_multiply(1ull << 32, 1ull << 32), std::nullopt);
}

std::optional<uint64_t> product(const std::vector<uint64_t>& shape) {
  return checked_product(shape);
}

TEST(CheckedMath, CountsTheElementsOfAShape) {
  EXPECT_EQ(product({}), 1u);  // a scalar
  EXPECT_EQ(product({5}), 5u);
  EXPECT_EQ(product({2, 3, 4}), 24u);
  EXPECT_EQ(product({2, 0, 4}), 0u);
  EXPECT_EQ(product({1ull << 32, 1ull << 31, 1}), 1ull << 63);
  EXPECT_EQ(product({1ull << 32, 1ull << 32}), std::nullopt);
  EXPECT_EQ(product({1ull << 40, 1ull << 40, 0}), std::nullopt);  // absurd in spite of the zero
}

TEST(CheckedMath, RoundsUpToAMultiple) {
  static_assert(round_up(0, 4096) == 0);
  static_assert(round_up(1, 4096) == 4096);
  static_assert(round_up(4096, 4096) == 4096);
  static_assert(round_up(4097, 4096) == 8192);
  static_assert(round_up(7, 1) == 7);
}

}  // namespace
}  // namespace deltafin
