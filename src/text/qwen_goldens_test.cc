#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/byte_level_tokenizer.h"
#include "text/qwen_pattern.h"
#include "text/third_party_data.h"

namespace deltafin::text {
namespace {

using nlohmann::json;

void replace_once(const std::string& old, const std::string& now, std::string& text) {
  const size_t at = text.find(old);
  ASSERT_NE(at, std::string::npos) << old;
  text.replace(at, old.size(), now);
}

class QwenGoldens : public ThirdPartyData {
 protected:
  // Qwen3's, with the split pattern of Qwen3.5 and perhaps another normalizer. As text: taking 11
  // MB apart and putting them together again would take most of the time.
  std::unique_ptr<Tokenizer> open_with_qwen35_pattern(const std::string& normalizer) const {
    std::string file = read("qwen3/tokenizer.json");
    replace_once(json(kQwen2Pattern).dump(), json(kQwen35Pattern).dump(), file);
    const size_t begin = file.find("\"normalizer\":");
    const size_t end = file.find('}', begin) + 1;
    file.replace(begin, end - begin, "\"normalizer\": " + normalizer);
    return make_byte_level_tokenizer(file, "patched").value();
  }
  std::unique_ptr<Tokenizer> open() const {
    return make_byte_level_tokenizer(read("qwen3/tokenizer.json"), "tokenizer.json").value();
  }
};

// Of the cases that the published tokenizer reads: it always takes control tokens for such.
void expect_ids(const Tokenizer& tokenizer, const json& cases) {
  for (const json& c : cases) {
    const std::string text = from_hex(c["utf8_hex"]);
    const std::vector<TokenId> expected = c["ids"];
    const Result<std::vector<TokenId>> ids = tokenizer.encode(text, SpecialTokens::Parse);
    ASSERT_TRUE(ids) << ids.error().what;
    EXPECT_EQ(*ids, expected) << c["category"] << ": " << text;
  }
}

TEST_F(QwenGoldens, TheVocabularyHas151669Tokens) {
  const std::unique_ptr<Tokenizer> tokenizer = open();
  EXPECT_EQ(tokenizer->vocabulary_size(), 151'669u);
  EXPECT_EQ(tokenizer->find_control_token("<|im_end|>"), 151'645);
  EXPECT_EQ(tokenizer->find_control_token("<think>"), 151'667);
  EXPECT_TRUE(tokenizer->is_special(151'645));
  EXPECT_FALSE(tokenizer->is_special(151'667));
  EXPECT_EQ(tokenizer->bytes_of(151'644), "<|im_start|>");
}

TEST_F(QwenGoldens, EveryTextHasThePublishedTokens) {
  const json cases = read_json("qwen3-goldens.json")["cases"];
  EXPECT_EQ(cases.size(), 345u);
  expect_ids(*open(), cases);
}

TEST_F(QwenGoldens, EveryTextHasThePublishedTokensWithTheQwen35Pattern) {
  const json cases = read_json("qwen35-regex-goldens.json")["cases"];
  EXPECT_EQ(cases.size(), 345u);
  expect_ids(*open_with_qwen35_pattern(R"({"type": "NFC"})"), cases);
}

// Published as Qwen3.5's and equal to Qwen3's; three of them were made without normalisation.
TEST_F(QwenGoldens, OtherProjectsPublishedTheSameTokens) {
  const json cases = read_json("qwen35-pairs-llamacpp.json")["cases"];
  EXPECT_EQ(cases.size(), 50u);
  expect_ids(*open_with_qwen35_pattern("null"), cases);
}

TEST_F(QwenGoldens, ControlTokensAreTextUnlessParsed) {
  const std::unique_ptr<Tokenizer> tokenizer = open();
  for (TokenId id = 151'643; id < 151'669; ++id) {
    const std::string spelling(tokenizer->bytes_of(id).value());
    const std::string text = "a" + spelling + " " + spelling + "\n";
    const std::vector<TokenId> as_text = tokenizer->encode(text, SpecialTokens::AsText).value();
    for (const TokenId token : as_text) EXPECT_LT(token, 151'643) << spelling;
    EXPECT_EQ(tokenizer->decode(as_text), text);
    EXPECT_EQ(tokenizer->encode(spelling, SpecialTokens::Parse), std::vector<TokenId>{id});
  }
}

}  // namespace
}  // namespace deltafin::text
