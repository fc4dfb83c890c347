#include "text/kimi_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "base/philox.h"
#include "text/test_text.h"

namespace deltafin::text {
namespace {

using testing::HasSubstr;

// The bundled model's: 2304 ranks and K3's control tokens.
const Tokenizer& demo() {
  static const std::unique_ptr<Tokenizer> tokenizer =
      open_tokenizer(io::PosixStorage(), DELTAFIN_SOURCE_DIR "/models/demo").value();
  return *tokenizer;
}

std::vector<TokenId> encode(std::string_view text, SpecialTokens mode) {
  const Result<std::vector<TokenId>> ids = demo().encode(text, mode);
  EXPECT_TRUE(ids) << ids.error().what;
  return ids.value_or(std::vector<TokenId>{});
}

std::string decode(const std::vector<TokenId>& ids) {
  std::string bytes;
  for (const TokenId id : ids) bytes += demo().bytes_of(id).value();
  return bytes;
}

TEST(KimiTokenizer, TheSizeOfTheVocabularyIsThatOfTheFile) {
  EXPECT_EQ(demo().vocabulary_size(), 2304u + 256u);
  EXPECT_FALSE(demo().is_special(2303));
  EXPECT_TRUE(demo().is_special(2304));
  EXPECT_TRUE(demo().is_special(2559));
  EXPECT_FALSE(demo().is_special(2560));
  EXPECT_FALSE(demo().is_special(-1));
}

TEST(KimiTokenizer, AnIdOutsideTheVocabularyIsAnError) {
  for (const TokenId id : {-1, 2560, INT32_MAX, INT32_MIN}) {
    const Result<std::string_view> bytes = demo().bytes_of(id);
    ASSERT_FALSE(bytes) << id;
    EXPECT_EQ(bytes.error().code, ErrorCode::Usage);
    EXPECT_EQ(bytes.error().what,
              "token id " + std::to_string(id) + " is outside the vocabulary 0..2559");
  }
}

TEST(KimiTokenizer, DecodesTokensAndControlTokensToTheirBytes) {
  EXPECT_EQ(demo().decode(std::vector<TokenId>{'a', 2304, 0xFF}), "a[BOS]\xFF");
  EXPECT_EQ(demo().decode({}), "");
  EXPECT_EQ(demo().find_control_token("[BOS]"), 2304);
  EXPECT_EQ(demo().find_control_token("a"), std::nullopt);
  const Result<std::string> outside = demo().decode(std::vector<TokenId>{'a', 2560});
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, ErrorCode::Usage);
}

TEST(KimiTokenizer, TokensPutTogetherAreTheText) {
  Random random(test_seed());
  SCOPED_TRACE(test_seed());
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_text(random, random.below(200));
    for (const SpecialTokens mode : {SpecialTokens::AsText, SpecialTokens::Parse})
      ASSERT_EQ(decode(encode(text, mode)), text);
  }
}

TEST(KimiTokenizer, AnEmptyTextHasNoTokens) {
  EXPECT_EQ(encode("", SpecialTokens::AsText), std::vector<TokenId>{});
  EXPECT_EQ(encode("", SpecialTokens::Parse), std::vector<TokenId>{});
}

TEST(KimiTokenizer, EverySpelledControlTokenIsTextUnlessParsed) {
  for (TokenId id = 2304; id < 2560; ++id) {
    const std::string spelling(demo().bytes_of(id).value());
    const std::string text = "see " + spelling + spelling + "\n";
    const std::vector<TokenId> as_text = encode(text, SpecialTokens::AsText);
    EXPECT_EQ(decode(as_text), text);
    for (const TokenId token : as_text) EXPECT_FALSE(demo().is_special(token)) << spelling;

    std::vector<TokenId> expected = encode("see ", SpecialTokens::AsText);
    expected.insert(expected.end(), {id, id});
    for (const TokenId token : encode("\n", SpecialTokens::AsText)) expected.push_back(token);
    EXPECT_EQ(encode(text, SpecialTokens::Parse), expected) << spelling;
  }
}

TEST(KimiTokenizer, TextBetweenControlTokensStandsAlone) {
  // "  " before a letter would leave one space to the word; before a control token it does not.
  const std::vector<TokenId> spaces = encode("  ", SpecialTokens::AsText);
  std::vector<TokenId> expected = spaces;
  expected.push_back(2307);
  for (const TokenId token : encode("a", SpecialTokens::AsText)) expected.push_back(token);
  EXPECT_EQ(encode("  <|open|>a", SpecialTokens::Parse), expected);
}

TEST(KimiTokenizer, IllFormedUtf8IsAnErrorThatNamesTheByte) {
  for (const SpecialTokens mode : {SpecialTokens::AsText, SpecialTokens::Parse}) {
    const Result<std::vector<TokenId>> ids = demo().encode("caf\xE9 au lait", mode);
    ASSERT_FALSE(ids);
    EXPECT_EQ(ids.error().code, ErrorCode::Usage);
    EXPECT_THAT(ids.error().what, HasSubstr("not well-formed UTF-8 at byte 3 (0xE9)"));
  }
}

TEST(KimiTokenizer, ATextThatIsTooLongIsAnError) {
  const Result<std::vector<TokenId>> ids =
      demo().encode(std::string(limits::kPromptBytes + 1, 'a'), SpecialTokens::AsText);
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code, ErrorCode::Usage);
  EXPECT_THAT(ids.error().what, HasSubstr("16777217 bytes, more than the 16777216"));
}

TEST(KimiTokenizer, LongRunsAreCutBehind25000CodePoints) {
  const std::string before(24'998, '.');
  std::vector<TokenId> expected = encode(before, SpecialTokens::AsText);
  for (const char* part : {"th", "e"})
    for (const TokenId id : encode(part, SpecialTokens::AsText)) expected.push_back(id);
  EXPECT_EQ(encode(before + "the", SpecialTokens::AsText), expected);
  EXPECT_EQ(encode("the", SpecialTokens::AsText).size(), 1u);  // so the cut does make a difference
}

TEST(KimiTokenizer, AControlTokenAcrossACutIsText) {
  const std::string before(24'997, 'n');  // the cut falls behind "<|o"
  const std::vector<TokenId> ids = encode(before + "<|open|>", SpecialTokens::Parse);
  for (const TokenId id : ids) EXPECT_FALSE(demo().is_special(id));
  EXPECT_EQ(decode(ids), before + "<|open|>");
}

// What is quadratic in the length of a text or of a piece does not end here.
TEST(KimiTokenizer, HostileTextsEnd) {
  const auto expect_round_trip = [](std::string_view unit, size_t size) {
    std::string text;
    while (text.size() < size) text += unit;
    for (const SpecialTokens mode : {SpecialTokens::AsText, SpecialTokens::Parse})
      EXPECT_EQ(decode(encode(text, mode)), text) << unit;
  };
  for (const std::string_view unit : {"a", " ", "aA", "a ", "<|reserved_token_"})
    expect_round_trip(unit, 1 << 20);
  for (const std::string_view unit :
       {"A", "\n", "\t ", "7", ".", "中", "🙂", "\u0301", "a\n", "'s", "'S", "<", "[", "[BOS]",
        "a[BOS]", "\u3000\u3000a", "\x1C", "中a"})
    expect_round_trip(unit, 100'000);
}

TEST(KimiTokenizer, ManyThreadsMayEncode) {
  Random random(test_seed());
  const std::string text = random_text(random, 20'000);
  const std::vector<TokenId> expected = encode(text, SpecialTokens::Parse);
  std::vector<std::vector<TokenId>> results(4);
  std::vector<std::thread> threads;
  for (std::vector<TokenId>& result : results)
    threads.emplace_back([&] { result = encode(text, SpecialTokens::Parse); });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<TokenId>& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace deltafin::text
