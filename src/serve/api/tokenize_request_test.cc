#include "serve/api/tokenize_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api/test_requests.h"

namespace deltafin::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ApiResult<TokenizeRequest> tokenize(const std::string& body) {
  return parse_tokenize_request(body, "tiny");
}
ApiResult<std::vector<TokenId>> detokenize(const std::string& body) {
  return parse_detokenize_request(body, "tiny", 1000);
}

TEST(TokenizeRequest, HasItsTextUnderOneOfThreeNames) {
  for (const char* name : {"text", "prompt", "content"}) {
    const TokenizeRequest request = tokenize(fmt::format(R"({{"{}": "abc"}})", name)).value();
    EXPECT_EQ(request.text, "abc");
    EXPECT_FALSE(request.parse_special || request.with_pieces);
  }
  EXPECT_EQ(problem(tokenize(R"({"text": "a", "prompt": "b"})")),
            "400 invalid_value prompt | prompt: means the same as text; send one of them");
  EXPECT_EQ(problem(tokenize("{}")),
            "400 missing_required_parameter text | text: is missing; expected a string");
  EXPECT_EQ(tokenize(R"({"text": ""})").value().text, "");
}

TEST(TokenizeRequest, SaysWhetherControlTokensAreParsed) {
  const TokenizeRequest request =
      tokenize(R"({"text": "a", "parse_special": true, "with_pieces": true, "model": "tiny",
                   "add_special": false})")
          .value();
  EXPECT_TRUE(request.parse_special && request.with_pieces);
  EXPECT_THAT(problem(tokenize(R"({"text": "a", "add_special": true})")),
              HasSubstr("add_special: is not supported"));
  EXPECT_THAT(problem(tokenize(R"({"text": "a", "parse_specials": true})")),
              HasSubstr("did you mean parse_special?"));
  EXPECT_THAT(problem(tokenize(R"({"text": "a", "model": "b"})")), HasSubstr("404 model_not"));
  EXPECT_THAT(problem(tokenize("[")), HasSubstr("400 invalid_json"));
}

TEST(TokenizeRequest, TakesIdsBack) {
  EXPECT_THAT(detokenize(R"({"tokens": [0, 999]})").value(), ElementsAre(0, 999));
  EXPECT_THAT(detokenize(R"({"tokens": []})").value(), ElementsAre());
  EXPECT_EQ(problem(detokenize(R"({"tokens": [5, 1000]})")),
            "400 invalid_value tokens[1] | tokens[1]: expected a token id from 0 to 999, found "
            "1000");
  EXPECT_THAT(problem(detokenize(R"({"tokens": "abc"})")), HasSubstr("tokens: expected an array"));
  EXPECT_THAT(problem(detokenize("{}")), HasSubstr("tokens: is missing"));
  EXPECT_THAT(problem(detokenize(R"({"token": [1]})")), HasSubstr("did you mean tokens?"));
}

TEST(TokenizeResponse, HasTokensAndTheirNumber) {
  const std::vector<TokenId> tokens = {5, 6};
  const std::vector<std::string> pieces = {"a", "\xe2"};
  EXPECT_EQ(tokenize_json(tokens, nullptr), R"({"tokens":[5,6],"count":2})");
  EXPECT_EQ(tokenize_json(tokens, &pieces),
            R"({"tokens":[5,6],"count":2,"pieces":["a","bytes:\\xe2"]})");
  EXPECT_EQ(tokenize_json({}, nullptr), R"({"tokens":[],"count":0})");
  EXPECT_EQ(detokenize_json("a\xe2\x82\xac"), "{\"text\":\"a\xe2\x82\xac\"}");
  EXPECT_EQ(detokenize_json("a\xe2"), "{\"text\":\"a\xef\xbf\xbd\"}");
}

}  // namespace
}  // namespace deltafin::serve
