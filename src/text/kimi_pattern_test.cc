#include "text/kimi_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/philox.h"
#include "text/split_pattern.h"
#include "text/test_text.h"

namespace deltafin::text {
namespace {

std::vector<std::string_view> split(RegexEngine engine, std::string_view text) {
  static const SplitPattern compiled =
      SplitPattern::compile(kimi_split_pattern(), {.engine = RegexEngine::Compiled}).value();
  static const SplitPattern interpreted =
      SplitPattern::compile(kimi_split_pattern(), {.engine = RegexEngine::Interpreted}).value();
  const SplitPattern& pattern = engine == RegexEngine::Compiled ? compiled : interpreted;
  SplitPattern::Scratch scratch(pattern);
  std::vector<std::string_view> pieces;
  const Status status = pattern.split(text, scratch, pieces);
  EXPECT_TRUE(status) << status.error().what;
  return pieces;
}

// Cases are written as their pieces, and the text is what they are put together.
void expect_pieces(const std::vector<std::string_view>& pieces) {
  std::string text;
  for (const std::string_view piece : pieces) text += piece;
  EXPECT_EQ(split(RegexEngine::Compiled, text), pieces);
  EXPECT_EQ(split(RegexEngine::Interpreted, text), pieces);
}

TEST(KimiPattern, Alternative1HanRunsStandAlone) {
  expect_pieces({"中文字"});
  expect_pieces({"abc", "中文", "def", "国"});
  expect_pieces({" ", "中文", " ", "国"});  // a space is not drawn to Han
  expect_pieces({"中", "ひら", "国"});
  expect_pieces({"々〇〡⺀"});      // Han of the categories Lm, Nl and So
  expect_pieces({"1〇2", "〇"});    // behind a number, a Han number counts as a number
  expect_pieces({"\U00016FF0中"});  // and Mc
  expect_pieces({" ", "\U00020000\U0002EBF0\U00031350"});  // extensions B, I and H
}

TEST(KimiPattern, HanIsTheScriptNotWhatIsUsedWithIt) {
  expect_pieces({"中", "。", "国", "、「", "文", "」"});
  expect_pieces({"〆", "切", "・ー"});
}

TEST(KimiPattern, Alternative2WordsThatEndInLowerCase) {
  expect_pieces({"hello", " world"});
  expect_pieces({"Hello", "World"});  // a capital starts a new word
  expect_pieces({"HTTPServer"});      // capitals, then small letters
  expect_pieces({"été", " Ünï"});
  expect_pieces({"ǅon"});                  // title case counts as upper case
  expect_pieces({"한국어", " ひらカタ"});  // letters without case
  expect_pieces({"a", "ǅon"});
  // Modifier letters, letters without case and marks are of both classes.
  expect_pieces({"ʰx", "Xʰ", "Y"});
  expect_pieces({"XʰYy"});
  expect_pieces({"ひx", "Xひ", "Y"});
  expect_pieces({"XひYy"});
  expect_pieces({"e\u0301a\u0301", "A\u0301", "B"});
  expect_pieces({"A\u0301Bb"});
  expect_pieces({"\u0301a"});
}

TEST(KimiPattern, Alternative2TakesOneCharacterBefore) {
  expect_pieces({"(a", ")b", "\tc", "_d", "\"e"});
  expect_pieces({"  ", " a"});
  expect_pieces({"((", "a"});  // alternative 5 is asked at the first bracket
  expect_pieces({"\n", "a"});  // but no line end
  expect_pieces({"\r", "a"});
  expect_pieces({"1", "a"});  // and no number
  expect_pieces({"\u00A0a", "\u3000b"});
}

TEST(KimiPattern, Alternative2TakesAContraction) {
  expect_pieces({"don't", " we're", " I've", " he'll", " I'd", " I'm", " it's"});
  expect_pieces({"DON'T", " we'RE", " x'Ll"});  // in any case
  expect_pieces({"it'\u017F"});                 // and case folds as Unicode says: long s
  expect_pieces({"it's", "x"});
  expect_pieces({"a", "'x"});
  expect_pieces({"a", "'"});
  expect_pieces({"a", "’s"});  // only the straight apostrophe
  expect_pieces({"'s"});       // a word of its own, with one character before
  expect_pieces({"1", "'s"});
  expect_pieces({"中", "'s"});
}

TEST(KimiPattern, Alternative3WordsInUpperCase) {
  expect_pieces({"HELLO"});
  expect_pieces({" HELLO", " A"});
  expect_pieces({"A's", "BC'LL"});
  expect_pieces({"ABC", "中"});
  expect_pieces({"Ab", "C"});
  expect_pieces({".X"});
}

TEST(KimiPattern, Alternative4NumbersByThree) {
  expect_pieces({"1"});
  expect_pieces({"123", "456", "7"});
  expect_pieces({" ", "12", "a"});  // a space is not drawn to a number
  expect_pieces({"1", ".", "5"});
  expect_pieces({"Ⅳ²½", "٣"});  // of all number categories
}

TEST(KimiPattern, Alternative5Punctuation) {
  expect_pieces({"!!", "1"});
  expect_pieces({" ...", " ", "1"});
  expect_pieces({"a", " +", " b"});
  expect_pieces({".\n\r\n", "x"});  // with the line ends behind it
  expect_pieces({"...\n", " x"});
  expect_pieces({"  ", " ?"});
  expect_pieces({"🙂🚀"});
  expect_pieces({" \u200D"});
  expect_pieces({"\x01\x1C\x1F"});      // control characters, the information separators too
  expect_pieces({"a", "\u180E", "1"});  // U+180E is no whitespace
  expect_pieces({" \u180E!"});
}

TEST(KimiPattern, Alternative6LineEndsWithTheSpaceBefore) {
  expect_pieces({"\n"});
  expect_pieces({"a", "  \n", "b"});
  expect_pieces({"a", "\n\n\r\n", "b"});
  expect_pieces({"a", " \n \n", "  ", " b"});  // up to the last line end
  expect_pieces({"\t\r"});
}

TEST(KimiPattern, Alternative7SpaceButForTheLastCharacter) {
  expect_pieces({"a", "   ", " b"});
  expect_pieces({"a", "  ", " ", "1"});
  expect_pieces({"a", "  ", " ", "中"});
  expect_pieces({"a", "   "});  // at the end, all of it
  expect_pieces({"a", "\t", "\tb"});
  expect_pieces({"\u2028\u2029\u1680\u205F", "\u0085", "1"});
}

TEST(KimiPattern, Alternative8ASpaceThatNothingTakes) {
  expect_pieces({" ", "1"});
  expect_pieces({"a", " ", "中"});
  expect_pieces({"\v", "1"});
}

TEST(KimiPattern, NoCodePointIsLostAndBothEnginesAgree) {
  Random random(test_seed());
  SCOPED_TRACE(test_seed());
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_text(random, 1 + random.below(100));
    const std::vector<std::string_view> pieces = split(RegexEngine::Compiled, text);
    std::string whole;
    for (const std::string_view piece : pieces) whole += piece;
    ASSERT_EQ(whole, text);
    ASSERT_EQ(split(RegexEngine::Interpreted, text), pieces);
  }
}

TEST(KimiPattern, EveryCodePointIsAPieceOfItsOwnWhenAlone) {
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (is_surrogate(c)) continue;
    text.clear();
    append_utf8(c, text);
    ASSERT_EQ(split(RegexEngine::Compiled, text).size(), 1u) << uint32_t{c};
  }
}

// Far longer than the 25,000 code points that the tokenizer lets through.
TEST(KimiPattern, LongRunsNeedNeitherMuchStackNorManySteps) {
  constexpr size_t kLength = 1'000'000;
  for (const std::string unit : {"a", "A", "é", "中", ".", " ", "\n", "e\u0301"}) {
    std::string text;
    while (text.size() < kLength) text += unit;
    EXPECT_EQ(split(RegexEngine::Compiled, text).size(), 1u) << unit;
    EXPECT_EQ(split(RegexEngine::Interpreted, text).size(), 1u) << unit;
    EXPECT_EQ(split(RegexEngine::Compiled, text + "7").size(), unit == " " ? 3u : 2u) << unit;
  }
}

}  // namespace
}  // namespace deltafin::text
