#include "cli/flag_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deltafin::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseInteger, TakesWholeNumbersInRange) {
  EXPECT_EQ(parse_integer("0", 0, 10), 0u);
  EXPECT_EQ(parse_integer("10", 0, 10), 10u);
  EXPECT_EQ(parse_integer("18446744073709551615", 0, UINT64_MAX), UINT64_MAX);
}

TEST(ParseInteger, RefusesEverythingElse) {
  for (const char* text : {"", " ", "-1", "+1", "11", "1.0", "1e1", "0x1", "1 ", " 1", "ten",
                           "18446744073709551616"}) {
    const Result<uint64_t> number = parse_integer(text, 0, 10);
    ASSERT_FALSE(number) << text;
    EXPECT_EQ(number.error().code, ErrorCode::Usage);
    EXPECT_EQ(number.error().what,
              std::string("found \"") + text + "\", expected an integer from 0 to 10");
  }
}

TEST(ParseInteger, DoesNotSpellOutALimitThatNobodyMeets) {
  EXPECT_EQ(parse_integer("-1", 1, UINT64_MAX).error().what,
            "found \"-1\", expected an integer of at least 1");
}

TEST(ParseReal, TakesDecimalNotation) {
  EXPECT_EQ(parse_real("0.7"), 0.7f);
  EXPECT_EQ(parse_real("-1"), -1.0f);
  EXPECT_EQ(parse_real("1e-3"), 1e-3f);
  EXPECT_EQ(parse_real(".5"), .5f);
}

TEST(ParseReal, RefusesWhatIsNoFiniteNumber) {
  for (const char* text : {"", "x", "1,5", "0.7x", "nan", "inf", "-inf", "1e999", "--"})
    EXPECT_FALSE(parse_real(text)) << text;
}

TEST(ParseSize, TellsDecimalFromBinaryUnits) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("1000000"), 1'000'000u);
  EXPECT_EQ(parse_size("17 B"), 17u);
  EXPECT_EQ(parse_size("2GB"), 2'000'000'000u);
  EXPECT_EQ(parse_size("2GiB"), 2ull << 30);
  EXPECT_EQ(parse_size("512MiB"), 512ull << 20);
  EXPECT_EQ(parse_size("64kB"), 64'000u);
  EXPECT_EQ(parse_size("64KiB"), 65'536u);
  EXPECT_EQ(parse_size("1.5 tb"), 1'500'000'000'000u);
  EXPECT_EQ(parse_size("1.0005kB"), 1000u);
}

TEST(ParseSize, RefusesWhatCouldMeanTwoThings) {
  for (const char* text : {"", "GB", "2G", "2M", "-1GB", "2 GB x", "1.2.3GB", "2QB", "1,5GB", "."})
    EXPECT_FALSE(parse_size(text)) << text;
  EXPECT_THAT(parse_size("2G").error().what, HasSubstr("512MiB (512 x 2^20)"));
}

TEST(ParseSize, RefusesMoreThanAnyMachineHas) {
  EXPECT_FALSE(parse_size("9223372036854775808"));
  EXPECT_FALSE(parse_size("999999999PB"));
}

TEST(ParseIds, TakesAListWithBlanks) {
  EXPECT_THAT(parse_ids("7").value(), ElementsAre(7));
  EXPECT_THAT(parse_ids("1,2,3").value(), ElementsAre(1, 2, 3));
  EXPECT_THAT(parse_ids(" 1 , 2,\n3 ").value(), ElementsAre(1, 2, 3));
}

TEST(ParseIds, NamesThePlaceOfWhatIsNoId) {
  for (const char* text : {"", ",", "1,,3", "1,2,", "1;2", "-1", "1 2", "99999999999"})
    EXPECT_FALSE(parse_ids(text)) << text;
  EXPECT_THAT(parse_ids("1,x,3").error().what, HasSubstr("found \"x\" in place 2 of the list"));
}

TEST(Setters, LeaveTheOptionAloneWhenTheTextIsWrong) {
  std::optional<uint64_t> size;
  EXPECT_FALSE(size_into(size)("much"));
  EXPECT_FALSE(size.has_value());
  EXPECT_TRUE(size_into(size)("1kB"));
  EXPECT_EQ(size, 1000u);
}

TEST(Budget, IsASizeAShareOrAutomatic) {
  EXPECT_EQ(std::get<uint64_t>(*parse_budget("24GB")), 24'000'000'000u);
  EXPECT_EQ(std::get<uint64_t>(*parse_budget("512MiB")), 512u << 20);
  EXPECT_DOUBLE_EQ(std::get<memory::ShareOfUsable>(*parse_budget("80%")).share, 0.8);
  EXPECT_DOUBLE_EQ(std::get<memory::ShareOfUsable>(*parse_budget("12.5 %")).share, 0.125);
  EXPECT_TRUE(std::holds_alternative<memory::AutoBudget>(*parse_budget("auto")));
  for (const char* bad : {"", "%", "0%", "101%", "-5%", "nan%", "automatic", "24G", "80% "})
    EXPECT_FALSE(parse_budget(bad)) << bad;
}

TEST(Rate, IsGigabytesASecond) {
  EXPECT_DOUBLE_EQ(*parse_rate("7.2"), 7.2e9);
  for (const char* bad : {"", "0", "-1", "7.2GB", "inf", "nan", "1e9"})
    EXPECT_FALSE(parse_rate(bad)) << bad;
}

}  // namespace
}  // namespace deltafin::cli
