#include "text/split_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace deltafin::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class SplitPatternTest : public testing::TestWithParam<RegexEngine> {
 protected:
  SplitPattern compile(std::string_view pattern, SplitOptions options = {}) {
    options.engine = GetParam();
    return SplitPattern::compile(pattern, options).value();
  }
  std::vector<std::string_view> split(std::string_view pattern, std::string_view text) {
    const SplitPattern compiled = compile(pattern);
    SplitPattern::Scratch scratch(compiled);
    std::vector<std::string_view> pieces;
    EXPECT_TRUE(compiled.split(text, scratch, pieces));
    return pieces;
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, SplitPatternTest,
                         testing::Values(RegexEngine::Compiled, RegexEngine::Interpreted),
                         [](const testing::TestParamInfo<RegexEngine>& engine) {
                           return engine.param == RegexEngine::Compiled ? "Compiled"
                                                                        : "Interpreted";
                         });

TEST_P(SplitPatternTest, CutsIntoSuccessiveMatches) {
  EXPECT_THAT(split("a+|b", "aabba"), ElementsAre("aa", "b", "b", "a"));
  EXPECT_THAT(split("a+|b", ""), IsEmpty());
}

TEST_P(SplitPatternTest, KeepsWhatLiesBetweenMatches) {
  EXPECT_THAT(split("a+", "xxaaybaz"), ElementsAre("xx", "aa", "yb", "a", "z"));
  EXPECT_THAT(split("a+", "xyz"), ElementsAre("xyz"));
}

TEST_P(SplitPatternTest, LeavesOutEmptyMatches) {
  EXPECT_THAT(split("a*", "baac"), ElementsAre("b", "aa", "c"));
}

TEST_P(SplitPatternTest, ReadsUtf8AndUnicodeProperties) {
  EXPECT_THAT(split(R"(\p{Lu}|.)", "É中🙂"), ElementsAre("É", "中", "🙂"));
  EXPECT_THAT(split(R"(\d+)", "x٣٤"), ElementsAre("x", "٣٤"));
}

TEST_P(SplitPatternTest, LooksAheadNoFurtherThanTheText) {
  const std::string_view text = "a  b";
  EXPECT_THAT(split(R"(\s+(?!\S)|\S+)", text.substr(0, 3)), ElementsAre("a", "  "));
  EXPECT_THAT(split(R"(\s+(?!\S)|\S+)", text), ElementsAre("a", " ", " ", "b"));
}

TEST_P(SplitPatternTest, AScratchServesManyTexts) {
  const SplitPattern pattern = compile("a+|b+");
  SplitPattern::Scratch scratch(pattern);
  std::vector<std::string_view> pieces;
  ASSERT_TRUE(pattern.split("aab", scratch, pieces));
  ASSERT_TRUE(pattern.split("ba", scratch, pieces));
  EXPECT_THAT(pieces, ElementsAre("b", "a"));
}

TEST_P(SplitPatternTest, APieceThatNeedsTooManyStepsIsAnError) {
  // Each way to split the a's between the two loops is tried before the missing b is believed.
  constexpr std::string_view kSlow = "(?:a+a+)+b|c";
  const std::string text = "cc" + std::string(13, 'a') + "x";
  const SplitPattern pattern = compile(kSlow, {.steps_max = 1000});
  SplitPattern::Scratch scratch(pattern);
  std::vector<std::string_view> pieces;
  const Status status = pattern.split(text, scratch, pieces);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Usage);
  EXPECT_EQ(status.error().what,
            "the text cannot be split into pieces at byte 2: match limit exceeded");
  EXPECT_THAT(split(kSlow, text), ElementsAre("c", "c", "aaaaaaaaaaaaax"));
  // The scratch is still good.
  EXPECT_TRUE(pattern.split("cc", scratch, pieces));
  EXPECT_THAT(pieces, ElementsAre("c", "c"));
}

// Needs something to come back to for each letter, so the compiled form runs out of its stack.
constexpr std::string_view kDeepPattern = "(?:a|b|ab)*c";

TEST_P(SplitPatternTest, DeepBacktrackingGoesOnOnTheHeap) {
  std::string text(100'000, 'a');
  text += 'c';
  EXPECT_THAT(split(kDeepPattern, text), ElementsAre(text));
}

TEST_P(SplitPatternTest, APieceThatNeedsTooMuchMemoryIsAnError) {
  const SplitPattern pattern = compile(kDeepPattern, {.heap_kib_max = 100});
  SplitPattern::Scratch scratch(pattern);
  std::vector<std::string_view> pieces;
  const Status status = pattern.split(std::string(100'000, 'a') + 'c', scratch, pieces);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Usage);
  EXPECT_THAT(status.error().what, HasSubstr("at byte 0: heap limit exceeded"));
}

TEST(SplitPattern, APatternThatDoesNotCompileIsAnError) {
  const Result<SplitPattern> pattern = SplitPattern::compile("a|(b", {});
  ASSERT_FALSE(pattern);
  EXPECT_EQ(pattern.error().code, ErrorCode::Usage);
  EXPECT_THAT(pattern.error().what, StartsWith("the split pattern does not compile at offset 4: "));
}

}  // namespace
}  // namespace deltafin::text
