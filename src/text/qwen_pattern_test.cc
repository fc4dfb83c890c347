#include "text/qwen_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/split_pattern.h"

namespace deltafin::text {
namespace {

std::vector<std::string_view> pieces_of(std::string_view published, std::string_view text,
                                        RegexEngine engine = RegexEngine::Compiled) {
  const SplitPattern pattern =
      SplitPattern::compile(published_split_pattern(published).value(), {.engine = engine}).value();
  SplitPattern::Scratch scratch(pattern);
  std::vector<std::string_view> pieces;
  EXPECT_TRUE(pattern.split(text, scratch, pieces));
  return pieces;
}

// With a bar between them.
std::string split_with(std::string_view published, std::string_view text) {
  std::string result;
  for (const std::string_view piece : pieces_of(published, text)) {
    if (!result.empty()) result += '|';
    result += piece;
  }
  return result;
}

std::string qwen2(std::string_view text) { return split_with(kQwen2Pattern, text); }
std::string qwen35(std::string_view text) { return split_with(kQwen35Pattern, text); }

TEST(QwenPattern, WordsTakeOneCharacterInFrontOfThem) {
  EXPECT_EQ(qwen2("Hello, world"), "Hello|,| world");
  EXPECT_EQ(qwen2("a.b  c"), "a|.b| | c");
  EXPECT_EQ(qwen2("\tif\nx"), "\tif|\n|x");
}

TEST(QwenPattern, ContractionsAreCutOffInAnyCase) {
  EXPECT_EQ(qwen2("it's THEY'LL I'd"), "it|'s| THEY|'LL| I|'d");
  EXPECT_EQ(qwen2("'\u017F"), "'\u017F");  // the long s is an s
  EXPECT_EQ(qwen2("x'\u017Fy"), "x|'\u017F|y");
}

TEST(QwenPattern, EachDigitStandsAlone) {
  EXPECT_EQ(qwen2("123 4"), "1|2|3| |4");
  EXPECT_EQ(qwen2("½٣"), "½|٣");
}

TEST(QwenPattern, PunctuationTakesASpaceBeforeAndLineEndsBehind) {
  EXPECT_EQ(qwen2("x ==\n\ny"), "x| ==\n\n|y");
}

TEST(QwenPattern, SpacesLeaveOneToTheWord) {
  EXPECT_EQ(qwen2("a   b"), "a|  | b");
  EXPECT_EQ(qwen2("a   "), "a|   ");
  EXPECT_EQ(qwen2("a \n \n b"), "a| \n \n| b");
}

TEST(QwenPattern, AMongolianVowelSeparatorIsNoSpace) {
  EXPECT_EQ(qwen2(".\u180E."), ".\u180E.");
  EXPECT_EQ(qwen35(".\u180E."), ".\u180E.");
}

TEST(QwenPattern, MarksBelongToWordsInQwen35Only) {
  EXPECT_EQ(qwen2("नमस्ते"), "नमस|्त|े");
  EXPECT_EQ(qwen35("नमस्ते"), "नमस्ते");
  EXPECT_EQ(qwen35("q\u0301x"), "q\u0301x");
  EXPECT_EQ(qwen35("..\u0301"), "..|\u0301");
  EXPECT_EQ(qwen2("..\u0301"), "..\u0301");
}

// One piece may be as long as a text.
TEST(QwenPattern, LongRunsNeedNeitherMuchStackNorManySteps) {
  constexpr size_t kLength = 1'000'000;
  for (const std::string unit : {"a", "é", "中", ".", " ", "\n", " \n"}) {
    std::string text;
    while (text.size() < kLength) text += unit;
    for (const std::string_view pattern : {kQwen2Pattern, kQwen35Pattern})
      for (const RegexEngine engine : {RegexEngine::Compiled, RegexEngine::Interpreted})
        EXPECT_EQ(pieces_of(pattern, text, engine).size(), 1u) << unit;
  }
}

TEST(QwenPattern, OthersAreNotKnown) {
  EXPECT_FALSE(published_split_pattern(""));
  EXPECT_FALSE(published_split_pattern(R"(\p{L}+)"));
  EXPECT_FALSE(published_split_pattern(std::string(kQwen2Pattern) + " "));
}

}  // namespace
}  // namespace deltafin::text
