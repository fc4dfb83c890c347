#include "text/control_tokens.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace deltafin::text {
namespace {

using testing::HasSubstr;

Result<ControlTokens> from_names(const std::string& names) {
  return ControlTokens::from_config(R"({"added_tokens_decoder": {)" + names + "}}", "c.json", 1000);
}

std::string name(int id, const std::string& spelling) {
  return fmt::format(R"("{}": {{"content": "{}", "special": true}})", id, spelling);
}

TEST(ControlTokens, K3NamesStandAtTheirDistancesFromTheFirstId) {
  const ControlTokens tokens = ControlTokens::of_k3(163'584);
  const std::vector<std::pair<TokenId, std::string>> names = {
      {163'584, "[BOS]"},
      {163'585, "[EOS]"},
      {163'586, "<|end_of_msg|>"},
      {163'587, "<|open|>"},
      {163'588, "<|close|>"},
      {163'589, "<|sep|>"},
      {163'590, "[start_header_id]"},
      {163'591, "[end_header_id]"},
      {163'593, "[EOT]"},
      {163'602, "<|media_begin|>"},
      {163'603, "<|media_content|>"},
      {163'604, "<|media_end|>"},
      {163'605, "<|media_pad|>"},
      {163'649, "<osagent_mode>"},
      {163'838, "[UNK]"},
      {163'839, "[PAD]"},
  };
  std::set<TokenId> named;
  for (const auto& [id, spelling] : names) {
    EXPECT_EQ(tokens.spelling(id), spelling);
    named.insert(id);
  }
  for (TokenId id = 163'584; id < 163'840; ++id) {
    if (named.contains(id)) continue;
    EXPECT_EQ(tokens.spelling(id), fmt::format("<|reserved_token_{}|>", id));
  }
  EXPECT_EQ(ControlTokens::of_k3(2304).spelling(2306), "<|end_of_msg|>");
}

TEST(ControlTokens, Has256Ids) {
  const ControlTokens tokens = ControlTokens::of_k3(1000);
  EXPECT_FALSE(tokens.contains(999));
  EXPECT_TRUE(tokens.contains(1000));
  EXPECT_TRUE(tokens.contains(1255));
  EXPECT_FALSE(tokens.contains(1256));
  EXPECT_FALSE(tokens.contains(-1));
}

TEST(ControlTokens, TheConfigNamesThem) {
  const Result<ControlTokens> tokens =
      from_names(name(1002, "<|im_end|>") + "," + name(1255, "né"));
  ASSERT_TRUE(tokens) << tokens.error().what;
  EXPECT_EQ(tokens->spelling(1002), "<|im_end|>");
  EXPECT_EQ(tokens->spelling(1255), "né");
  EXPECT_EQ(tokens->spelling(1000), "<|reserved_token_1000|>");
}

TEST(ControlTokens, AConfigThatNamesNoneLeavesTheNamesOfK3) {
  const Result<ControlTokens> tokens =
      ControlTokens::from_config(R"({"model_max_length": 1})", "c.json", 1000);
  ASSERT_TRUE(tokens) << tokens.error().what;
  EXPECT_EQ(tokens->spelling(1000), "[BOS]");
}

TEST(ControlTokens, SaysWhatIsWrongWithAConfig) {
  struct WrongConfig {
    std::string json;
    std::string message;
  };
  const auto decoder = [](const std::string& names) {
    return R"({"added_tokens_decoder": {)" + names + "}}";
  };
  const std::string range = "but the control tokens of this vocabulary are 1000..1255";
  const std::string content = "content must be a string that is not empty";
  const std::vector<WrongConfig> cases = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"{", "not a JSON object"},
      {"{} x", "not a JSON object"},
      {"{\"a\": \"\xFF\"}", "not a JSON object"},
      {R"({"added_tokens_decoder": []})",
       "must be an object from id to token, but it is of type array"},
      {R"({"added_tokens_decoder": null})", "but it is of type null"},
      {decoder(name(999, "x")), "names id \"999\", " + range},
      {decoder(name(1256, "x")), "names id \"1256\", " + range},
      {decoder(name(-1, "x")), "names id \"-1\", " + range},
      {decoder(R"("01000": {"content": "x"})"), "names id \"01000\", " + range},
      {decoder(R"("1000x": {"content": "x"})"), "names id \"1000x\", " + range},
      {decoder(R"("": {"content": "x"})"), "names id \"\", " + range},
      {decoder(R"("99999999999": {"content": "x"})"), "names id \"99999999999\", " + range},
      {decoder(R"("1000": "x")"), "added_tokens_decoder.1000." + content},
      {decoder(R"("1000": {})"), "added_tokens_decoder.1000." + content},
      {decoder(R"("1000": {"content": 7})"), "added_tokens_decoder.1000." + content},
      {decoder(R"("1000": {"content": ""})"), "added_tokens_decoder.1000." + content},
      {decoder(name(1003, "x") + "," + name(1001, "x")),
       "the control tokens 1001 and 1003 are both spelled \"x\""},
      {decoder(name(1003, "<|reserved_token_1004|>")),
       "the control tokens 1003 and 1004 are both spelled \"<|reserved_token_1004|>\""},
  };
  for (const WrongConfig& c : cases) {
    const Result<ControlTokens> tokens = ControlTokens::from_config(c.json, "dir/c.json", 1000);
    ASSERT_FALSE(tokens) << c.json;
    EXPECT_EQ(tokens.error().code, ErrorCode::BadModel);
    EXPECT_THAT(tokens.error().what, testing::StartsWith("dir/c.json: ")) << c.json;
    EXPECT_THAT(tokens.error().what, HasSubstr(c.message)) << c.json;
  }
}

TEST(ControlTokens, AreFoundByTheirWholeSpelling) {
  const ControlTokens tokens =
      from_names(name(1000, "ab") + "," + name(1001, "abcd") + "," + name(1002, "b")).value();
  EXPECT_EQ(tokens.id_of("ab"), 1000);
  EXPECT_EQ(tokens.id_of("abcd"), 1001);
  EXPECT_EQ(tokens.id_of("b"), 1002);
  for (const char* none : {"", "a", "abc", "abcde", "xab", "ab "})
    EXPECT_EQ(tokens.id_of(none), std::nullopt) << none;
  for (TokenId id = 1000; id < 1256; ++id) EXPECT_EQ(tokens.id_of(tokens.spelling(id)), id);
}

// The tokens found in `text`, as "begin:id" each.
std::string found(const ControlTokens& tokens, std::string_view text) {
  std::string result;
  size_t at = 0;
  while (const auto match = tokens.find(text, at)) {
    result += fmt::format("{}:{} ", match->begin, match->id);
    EXPECT_EQ(text.substr(match->begin, match->size), tokens.spelling(match->id));
    at = match->begin + match->size;
  }
  return result;
}

TEST(ControlTokens, FindsEachSpellingInAText) {
  const ControlTokens tokens = ControlTokens::of_k3(1000);
  for (TokenId id = 1000; id < 1256; ++id) {
    const std::string spelling(tokens.spelling(id));
    EXPECT_EQ(found(tokens, "<" + spelling + "[" + spelling),
              fmt::format("1:{} {}:{} ", id, spelling.size() + 2, id));
    EXPECT_EQ(found(tokens, spelling.substr(0, spelling.size() - 1)), "");
    EXPECT_EQ(found(tokens, spelling.substr(1)), "");
  }
  EXPECT_EQ(found(tokens, ""), "");
  EXPECT_EQ(found(tokens, "[bos]<|OPEN|>"), "");
}

TEST(ControlTokens, FindsTheLeftmostThenTheLongest) {
  const ControlTokens tokens =
      from_names(name(1000, "ab") + "," + name(1001, "abcd") + "," + name(1002, "bcde") + "," +
                 name(1003, "abc") + "," + name(1004, "\\u00e9"))
          .value();
  EXPECT_EQ(found(tokens, "abcde"), "0:1001 ");
  EXPECT_EQ(found(tokens, "abce"), "0:1003 ");
  EXPECT_EQ(found(tokens, "abxab"), "0:1000 3:1000 ");
  EXPECT_EQ(found(tokens, "xbcdeab"), "1:1002 5:1000 ");
  EXPECT_EQ(found(tokens, "aébcd"), "1:1004 ");
}

}  // namespace
}  // namespace deltafin::text
