#include "text/rank_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "text/test_text.h"

namespace deltafin::text {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(RankFile, GivesEachTokenTheRankOfItsLine) {
  const std::vector<std::string> tokens =
      tokens_with({"ab", "abc", "abcd", std::string("\0\n ", 3)});
  const Result<RankTable> table = parse_rank_file(rank_file_of(tokens), "f");
  ASSERT_TRUE(table) << table.error().what;
  ASSERT_EQ(table->size(), tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(table->bytes(static_cast<Rank>(i)), tokens[i]);
    EXPECT_EQ(table->find(tokens[i]), i);
  }
}

TEST(RankFile, TheLastLineNeedsNoNewline) {
  std::string text = rank_file_of(tokens_with({"ab"}));
  text.pop_back();
  const Result<RankTable> table = parse_rank_file(text, "f");
  ASSERT_TRUE(table) << table.error().what;
  EXPECT_EQ(table->size(), 257u);
}

TEST(RankFile, SaysWhatIsWrongWithALine) {
  struct Case {
    std::string line;  // takes the place of line 258, whose rank is 257
    std::string message;
  };
  const std::vector<Case> cases = {
      {"YWJj", "expected \"<base64> 257\", found \"YWJj\""},
      {"", "expected \"<base64> 257\", found \"\""},
      {"YWJj\t257", "expected \"<base64> 257\", found \"YWJj?257\""},
      {" 257", "the token is empty"},
      {"==== 257", "\"====\" is not padded base64"},
      {"YWJ 257", "\"YWJ\" is not padded base64"},    // a character is missing
      {"YWI 257", "\"YWI\" is not padded base64"},    // the padding is missing
      {"YW=j 257", "\"YW=j\" is not padded base64"},  // padding inside
      {"Y=== 257", "\"Y===\" is not padded base64"},  // less than one byte
      {"YWJ= 257", "\"YWJ=\" is not padded base64"},  // bits behind the last byte
      {"YR== 257", "\"YR==\" is not padded base64"},  // the same
      {"YW-_ 257", "\"YW-_\" is not padded base64"},  // the alphabet for URLs
      {"YW\xC3\xA9 257", "\"YW??\" is not padded base64"},
      {"YWJj 256", "the rank must be 257, one more than on the line before, but it is \"256\""},
      {"YWJj 258", "the rank must be 257, one more than on the line before, but it is \"258\""},
      {"YWJj 0257", "but it is \"0257\""},
      {"YWJj +257", "but it is \"+257\""},
      {"YWJj  257", "but it is \" 257\""},
      {"YWJj 257 ", "but it is \"257 \""},
      {"YWJj 257\r", "but it is \"257?\""},
      {"YWJj ", "but it is \"\""},
      {"YWJj 99999999999999999999999999", "but it is \"99999999999999999999999999\""},
      {"YWI= 257", "the token was on line 257 already"},  // "ab", as the line before
      {"YQ== 257", "the token was on line 98 already"},   // "a"
      {std::string(1000, 'x'), "found \"" + std::string(40, 'x') + "...\""},
  };
  for (const Case& c : cases) {
    const std::string text = rank_file_of(tokens_with({"ab"})) + c.line + "\nYWJjZA== 258\n";
    const Result<RankTable> table = parse_rank_file(text, "dir/tiktoken.model");
    ASSERT_FALSE(table) << c.line;
    EXPECT_EQ(table.error().code, ErrorCode::BadModel);
    EXPECT_THAT(table.error().what, StartsWith("dir/tiktoken.model: line 258: ")) << c.line;
    EXPECT_THAT(table.error().what, HasSubstr(c.message)) << c.line;
  }
}

TEST(RankFile, RefusesAnEmptyFile) {
  for (const char* text : {"", "\n"}) {
    const Result<RankTable> table = parse_rank_file(text, "f");
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().what, "f: the rank file is empty");
  }
}

TEST(RankFile, RefusesAnEmptyLineAtTheEnd) {
  const Result<RankTable> table = parse_rank_file(rank_file_of(tokens_with({})) + "\n", "f");
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().what, StartsWith("f: line 257: expected"));
}

TEST(RankFile, NamesTheSingleBytesThatAreNoToken) {
  std::vector<std::string> tokens = tokens_with({"ab"});
  tokens.erase(tokens.begin() + 0xF0);
  tokens.erase(tokens.begin() + 0x0A);
  const Result<RankTable> few = parse_rank_file(rank_file_of(tokens), "f");
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().code, ErrorCode::BadModel);
  EXPECT_THAT(few.error().what, HasSubstr("2 of the 256 single bytes are no token: 0x0A 0xF0;"));

  const Result<RankTable> most = parse_rank_file(rank_file_of({"a", "ab"}), "f");
  ASSERT_FALSE(most);
  EXPECT_THAT(most.error().what, HasSubstr("255 of the 256 single bytes are no token: 0x00"));
  EXPECT_THAT(most.error().what, HasSubstr(" ...;"));
}

TEST(RankFile, RefusesMoreLinesThanAVocabularyMayHave) {
  const std::string text(limits::kVocabulary + 1, '\n');
  const Result<RankTable> table = parse_rank_file(text, "f");
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().what, HasSubstr("16777217 lines, but a vocabulary may have at most"));
}

TEST(RankFile, EveryTruncationIsRefusedOrLeavesWholeLines) {
  const std::string whole = rank_file_of(tokens_with({"ab", "abc"}));
  const size_t needed = rank_file_of(tokens_with({})).size() - 1;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Result<RankTable> table = parse_rank_file(whole.substr(0, size), "f");
    const bool at_line_end = size >= needed && (whole[size] == '\n' || whole[size - 1] == '\n');
    EXPECT_EQ(table.has_value(), at_line_end) << size;
  }
}

}  // namespace
}  // namespace deltafin::text
