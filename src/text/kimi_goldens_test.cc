#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/simulated.h"
#include "text/third_party_data.h"
#include "text/tokenizer.h"

namespace deltafin::text {
namespace {

using nlohmann::json;

class KimiGoldens : public ThirdPartyData {
 protected:
  void SetUp() override {
    ThirdPartyData::SetUp();
    if (!IsSkipped()) goldens_ = read_json("kimi-goldens.json");
  }

  // With the control tokens that the goldens' meta.`names` has; with those of K3 when it is empty.
  std::unique_ptr<Tokenizer> open(const std::string& names) const {
    io::SimulatedStorage storage;
    storage.add_file("kimi/tiktoken.model", read("kimi_tiktoken.model"));
    if (!names.empty()) {
      json config;
      for (const auto& [name, id] : goldens_["meta"][names].items())
        config["added_tokens_decoder"][id.dump()]["content"] = name;
      storage.add_file("kimi/tokenizer_config.json", config.dump());
    }
    return open_tokenizer(storage, "kimi").value();
  }

  json goldens_;
};

TEST_F(KimiGoldens, TheVocabularyHas163840Tokens) {
  const std::unique_ptr<Tokenizer> tokenizer = open("");
  EXPECT_EQ(tokenizer->vocabulary_size(), 163'840u);
  EXPECT_TRUE(tokenizer->is_special(163'584));
  EXPECT_EQ(tokenizer->bytes_of(163'586), "<|end_of_msg|>");
}

TEST_F(KimiGoldens, EveryTextHasThePublishedTokens) {
  const std::unique_ptr<Tokenizer> tokenizer = open("");
  size_t count = 0;
  for (const json& c : goldens_["cases"]) {
    const std::string text = from_hex(c["utf8_hex"]);
    const bool is_special_case = c.contains("ids_ordinary");
    const std::vector<TokenId> expected = c[is_special_case ? "ids_ordinary" : "ids"];
    const Result<std::vector<TokenId>> ids = tokenizer->encode(text, SpecialTokens::AsText);
    ASSERT_TRUE(ids) << ids.error().what;
    EXPECT_EQ(*ids, expected) << c["category"] << ": " << text;
    std::string bytes;
    for (const TokenId id : *ids) bytes += tokenizer->bytes_of(id).value();
    EXPECT_EQ(bytes, text);
    ++count;
  }
  EXPECT_EQ(count, 342u);
}

TEST_F(KimiGoldens, EveryTextWithControlTokensHasThePublishedTokens) {
  size_t count = 0;
  // K3's names once from a config and once by default.
  for (const auto& [category, names] :
       {std::pair{"special_k2", "special_k2"}, std::pair{"special_k3", "special_k3"},
        std::pair{"special_k3", ""}}) {
    const std::unique_ptr<Tokenizer> tokenizer = open(names);
    for (const json& c : goldens_["cases"]) {
      if (c["category"] != category) continue;
      const std::string text = from_hex(c["utf8_hex"]);
      const std::vector<TokenId> expected = c["ids"];
      EXPECT_EQ(tokenizer->encode(text, SpecialTokens::Parse), expected) << text;
      ++count;
    }
  }
  EXPECT_EQ(count, 3u + 5u + 5u);
}

TEST_F(KimiGoldens, ControlTokensAreTextUnlessParsed) {
  for (const std::string names : {"special_k2", "special_k3"}) {
    const std::unique_ptr<Tokenizer> tokenizer = open(names);
    for (TokenId id = 163'584; id < 163'840; ++id) {
      const std::string spelling(tokenizer->bytes_of(id).value());
      const std::string text = "a" + spelling + " " + spelling + "\n";
      const std::vector<TokenId> as_text = tokenizer->encode(text, SpecialTokens::AsText).value();
      for (const TokenId token : as_text) EXPECT_LT(token, 163'584) << spelling;
      EXPECT_EQ(tokenizer->decode(as_text), text);
      EXPECT_EQ(tokenizer->encode(spelling, SpecialTokens::Parse), std::vector<TokenId>{id});
      EXPECT_EQ(tokenizer->find_control_token(spelling), id);
    }
  }
}

TEST_F(KimiGoldens, OtherProjectsPublishedTheSameTokens) {
  const std::unique_ptr<Tokenizer> tokenizer = open("");
  const json pairs = read_json("kimi-third-party-pairs.json");
  EXPECT_EQ(pairs.size(), 17u);
  for (const json& c : pairs) {
    const std::vector<TokenId> expected = c["ids"];
    const std::string text = c["text"];
    EXPECT_EQ(tokenizer->encode(text, SpecialTokens::AsText), expected)
        << c["source"] << ": " << text;
  }
}

}  // namespace
}  // namespace deltafin::text
