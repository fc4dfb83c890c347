#include "cli/tokenize_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/file.h"

namespace deltafin::cli {
namespace {

// The bundled model's: bytes have their own ids, control tokens start at 2304.
const text::Tokenizer& demo() {
  static const std::unique_ptr<text::Tokenizer> tokenizer =
      text::open_tokenizer(io::PosixStorage(), DELTAFIN_SOURCE_DIR "/models/demo").value();
  return *tokenizer;
}

TEST(TokenizeReport, IdsAreAListThatIdsReads) {
  EXPECT_EQ(id_list({}), "");
  EXPECT_EQ(id_list({7}), "7");
  EXPECT_EQ(id_list({1, 20, 300}), "1,20,300");
}

TEST(TokenizeReport, DecodesControlTokensToTheirSpellingAndBytesThatAreNoUtf8ToU_FFFD) {
  EXPECT_EQ(decoded(demo(), {'a', 2304, 0xC3, 0xA9, 0xFF, 'b'}), "a[BOS]\u00E9\uFFFDb");
  EXPECT_EQ(decoded(demo(), {0xC3}), "\uFFFD");
  EXPECT_FALSE(decoded(demo(), {2560}));
}

TEST(TokenizeReport, HasEveryTokenOnItsOwn) {
  const nlohmann::ordered_json report = tokenize_json(demo(), "m", {0xC3, 0xA9, 2304}).value();
  EXPECT_EQ(report, nlohmann::ordered_json::parse(R"({
    "schema": "deltafin.tokenize.v1", "directory": "m", "vocabulary_size": 2560,
    "text": "\u00e9[BOS]", "ids": [195, 169, 2304],
    "tokens": [{"id": 195, "text": "\ufffd", "bytes": "c3", "control": false},
               {"id": 169, "text": "\ufffd", "bytes": "a9", "control": false},
               {"id": 2304, "text": "[BOS]", "bytes": "5b424f535d", "control": true}]})"));
  EXPECT_FALSE(tokenize_json(demo(), "m", {-1}));
}

}  // namespace
}  // namespace deltafin::cli
