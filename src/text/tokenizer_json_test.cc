#include "text/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace deltafin::text {
namespace {

using testing::HasSubstr;

std::string file_with(const std::string& model_fields) {
  return R"({"version": "1.0", "model": {"type": "BPE", )" + model_fields + "}, \"x\": [null]}";
}

TEST(TokenizerJson, HasVocabularyMergesAndTheRest) {
  const Result<TokenizerJson> file = TokenizerJson::read(
      file_with(R"("vocab": {"a": 1, "\u0120": 0}, "y": {}, "merges": ["a b", ["c", "\u0120d"]])"));
  ASSERT_TRUE(file) << file.error().what;
  ASSERT_EQ(file->vocab().size(), 2u);
  EXPECT_EQ(file->vocab()[0].letters, "a");
  EXPECT_EQ(file->vocab()[0].id, 1u);
  EXPECT_EQ(file->vocab()[1].letters, "\u0120");
  ASSERT_EQ(file->merges().size(), 2u);
  EXPECT_EQ(file->merges()[0].left, "a");
  EXPECT_EQ(file->merges()[0].right, "b");
  EXPECT_EQ(file->merges()[1].left, "c");
  EXPECT_EQ(file->merges()[1].right, "\u0120d");
  EXPECT_EQ(file->rest(),
            nlohmann::json::parse(
                R"({"version": "1.0", "model": {"type": "BPE", "y": {}}, "x": [null]})"));
}

TEST(TokenizerJson, ItsViewsSurviveAMove) {
  TokenizerJson file =
      TokenizerJson::read(file_with(R"("vocab": {"a": 1}, "merges": ["x y"])")).value();
  const TokenizerJson moved = std::move(file);
  EXPECT_EQ(moved.vocab()[0].letters, "a");
  EXPECT_EQ(moved.merges()[0].right, "y");
}

TEST(TokenizerJson, SaysWhatIsWrong) {
  const std::string pair = R"(expected "a b" or ["a", "b"])";
  const std::pair<std::string, std::string> cases[] = {
      {"", "not valid JSON"},
      {"[]", "not a JSON object"},
      {"{", "not valid JSON"},
      {file_with(R"("vocab": {}, "merges": [])") + " x", "not valid JSON"},
      {"{}", "model.vocab: found nothing"},
      {R"({"model": []})", "model: found no object"},
      {file_with(R"("vocab": {})"), "model.merges: found nothing"},
      {file_with(R"("merges": [])"), "model.vocab: found nothing"},
      {file_with(R"("vocab": [], "merges": [])"), "model.vocab: found no object"},
      {file_with(R"("vocab": {}, "merges": {})"), "model.merges: found no list"},
      {file_with(R"("vocab": {}, "vocab": {}, "merges": [])"), "model.vocab: found twice"},
      {file_with(R"("vocab": {}, "merges": [], "merges": [])"), "model.merges: found twice"},
      {file_with(R"("vocab": {"a": -1}, "merges": [])"), "the id of \"a\" is no integer"},
      {file_with(R"("vocab": {"a": 1.5}, "merges": [])"), "the id of \"a\" is no integer"},
      {file_with(R"("vocab": {"a": "1"}, "merges": [])"), "the id of \"a\" is no integer"},
      {file_with(R"("vocab": {}, "merges": ["a b", "ab"])"),
       "model.merges[1]: found \"ab\", " + pair},
      {file_with(R"("vocab": {}, "merges": ["a b c"])"),
       "model.merges[0]: found \"a b c\", " + pair},
      {file_with(R"("vocab": {}, "merges": [7])"), "found neither text nor list, " + pair},
      {file_with(R"("vocab": {}, "merges": [["a"]])"), "found a list of 1 texts, " + pair},
      {file_with(R"("vocab": {}, "merges": [[]])"), "found a list of 0 texts, " + pair},
      {file_with(R"("vocab": {}, "merges": [["a", "b", "c"]])"), "other than two texts, " + pair},
      {file_with(R"("vocab": {}, "merges": [["a", 1]])"), "other than two texts, " + pair},
      {file_with(R"("vocab": {}, "merges": [], "z": 1, "z": 2)"), "key \"z\" is given twice"},
      {R"({"model": {"vocab": {}, "merges": []}, "model": {}})", "key \"model\" is given twice"},
  };
  for (const auto& [json, message] : cases) {
    const Result<TokenizerJson> file = TokenizerJson::read(json);
    ASSERT_FALSE(file) << json;
    EXPECT_EQ(file.error().code, ErrorCode::BadModel);
    EXPECT_THAT(file.error().what, HasSubstr(message)) << json;
  }
}

TEST(TokenizerJson, EveryCutFileIsRefused) {
  const std::string whole = file_with(R"("vocab": {"a": 1}, "merges": ["a b", ["c", "d"]])");
  ASSERT_TRUE(TokenizerJson::read(whole));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(TokenizerJson::read(whole.substr(0, size))) << size;
}

}  // namespace
}  // namespace deltafin::text
