#include "cli/units.h"

#include <gtest/gtest.h>

namespace deltafin::cli {
namespace {

using std::chrono::milliseconds;

TEST(HumanBytes, HasThreeOrFourDigitsAndADecimalUnit) {
  EXPECT_EQ(human_bytes(uint64_t{0}), "0 bytes");
  EXPECT_EQ(human_bytes(uint64_t{1}), "1 byte");
  EXPECT_EQ(human_bytes(uint64_t{999}), "999 bytes");
  EXPECT_EQ(human_bytes(uint64_t{1000}), "1.000 kB");
  EXPECT_EQ(human_bytes(uint64_t{17'547'264}), "17.55 MB");
  EXPECT_EQ(human_bytes(uint64_t{25'830'000'000}), "25.8 GB");
  EXPECT_EQ(human_bytes(uint64_t{111'100'000'000}), "111 GB");
  EXPECT_EQ(human_bytes(uint64_t{1'446'000'000'000}), "1.446 TB");
}

TEST(HumanBytes, NeverPrintsAThousandOfAUnit) {
  EXPECT_EQ(human_bytes(uint64_t{999'999}), "1.000 MB");
  EXPECT_EQ(human_bytes(uint64_t{999'499}), "999 kB");
}

TEST(ExactBytes, AddsTheWholeNumber) {
  EXPECT_EQ(exact_bytes(17'547'264), "17.55 MB (17,547,264 bytes)");
  EXPECT_EQ(exact_bytes(12), "12 bytes");
}

TEST(WithSeparators, GroupsByThree) {
  EXPECT_EQ(with_separators(0), "0");
  EXPECT_EQ(with_separators(999), "999");
  EXPECT_EQ(with_separators(1000), "1,000");
  EXPECT_EQ(with_separators(1234567), "1,234,567");
}

TEST(HumanCount, SaysBillionsAsB) {
  EXPECT_EQ(human_count(12), "12");
  EXPECT_EQ(human_count(7'470'000), "7.47 M");
  EXPECT_EQ(human_count(48'100'000'000), "48.1 B");
  EXPECT_EQ(human_count(2'800'000'000'000), "2.80 T");
}

TEST(HumanDuration, ChangesUnitsWithSize) {
  EXPECT_EQ(human_duration(milliseconds(0)), "0 ms");
  EXPECT_EQ(human_duration(milliseconds(29)), "29 ms");
  EXPECT_EQ(human_duration(milliseconds(840)), "0.8 s");
  EXPECT_EQ(human_duration(milliseconds(12'400)), "12 s");
  EXPECT_EQ(human_duration(milliseconds(59'600)), "1 m 00 s");
  EXPECT_EQ(human_duration(milliseconds(185'000)), "3 m 05 s");
  EXPECT_EQ(human_duration(milliseconds(7'800'000)), "2 h 10 m");
}

}  // namespace
}  // namespace deltafin::cli
