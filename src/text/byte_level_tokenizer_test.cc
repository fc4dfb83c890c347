#include "text/byte_level_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/philox.h"
#include "io/file.h"
#include "text/nfc.h"
#include "text/qwen_pattern.h"
#include "text/test_text.h"

namespace deltafin::text {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr TokenId kFirstControlToken = 374;

json read_golden(const std::string& name) {
  return json::parse(io::read_text(io::PosixStorage(),
                                   DELTAFIN_SOURCE_DIR "/tests/golden/tiny-tokenizer/" + name,
                                   limits::kConfigBytes)
                         .value());
}

// A vocabulary of our own, in the form that Qwen publishes.
const json& tiny_file() {
  static const json file = read_golden("tokenizer.json");
  return file;
}

std::unique_ptr<Tokenizer> open(const json& file) {
  return make_byte_level_tokenizer(file.dump(), "t.json").value();
}

const Tokenizer& tiny() {
  static const std::unique_ptr<Tokenizer> tokenizer = open(tiny_file());
  return *tokenizer;
}

std::vector<TokenId> encode(const Tokenizer& tokenizer, std::string_view text,
                            SpecialTokens mode = SpecialTokens::AsText) {
  const Result<std::vector<TokenId>> ids = tokenizer.encode(text, mode);
  EXPECT_TRUE(ids) << ids.error().what;
  return ids.value_or(std::vector<TokenId>{});
}

TEST(ByteLevelTokenizer, GivesTheIdsOfThePublishedCode) {
  const json cases = read_golden("ids.json");
  EXPECT_EQ(cases.size(), 459u);
  for (const json& c : cases) {
    const std::string text = c["text"];
    EXPECT_EQ(encode(tiny(), text, SpecialTokens::Parse), c["ids"].get<std::vector<TokenId>>())
        << text;
  }
}

TEST(ByteLevelTokenizer, ReadsBothFormsOfMerges) {
  json file = tiny_file();
  for (json& merge : file["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  const std::unique_ptr<Tokenizer> other = open(file);
  for (const json& c : read_golden("ids.json"))
    EXPECT_EQ(encode(*other, c["text"].get<std::string>(), SpecialTokens::Parse),
              c["ids"].get<std::vector<TokenId>>());
}

TEST(ByteLevelTokenizer, TokensPutTogetherAreTheNormalFormOfTheText) {
  Random random(test_seed());
  SCOPED_TRACE(test_seed());
  json file = tiny_file();
  file["normalizer"] = nullptr;
  const std::unique_ptr<Tokenizer> exact = open(file);
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = kQwen35Pattern;
  const std::unique_ptr<Tokenizer> exact35 = open(file);
  std::string storage;
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_text(random, random.below(200));
    for (const SpecialTokens mode : {SpecialTokens::AsText, SpecialTokens::Parse}) {
      ASSERT_EQ(tiny().decode(encode(tiny(), text, mode)), to_nfc(text, storage));
      ASSERT_EQ(exact->decode(encode(*exact, text, mode)), text);
      ASSERT_EQ(exact35->decode(encode(*exact35, text, mode)), text);
    }
  }
}

TEST(ByteLevelTokenizer, ControlTokensAreNotNormalised) {
  json file = tiny_file();
  file["added_tokens"][0]["content"] = "<e\u0301>";
  const std::unique_ptr<Tokenizer> tokenizer = open(file);
  EXPECT_EQ(encode(*tokenizer, "<e\u0301>", SpecialTokens::Parse),
            std::vector<TokenId>{kFirstControlToken});
  EXPECT_EQ(encode(*tokenizer, "<\u00E9>", SpecialTokens::Parse),
            encode(*tokenizer, "<\u00E9>", SpecialTokens::AsText));
}

// A mark behind a control token has no letter to go to.
TEST(ByteLevelTokenizer, NormalisingStopsAtAControlToken) {
  std::vector<TokenId> expected = encode(tiny(), "e");
  expected.push_back(382);
  for (const TokenId id : encode(tiny(), "\u0301")) expected.push_back(id);
  EXPECT_EQ(encode(tiny(), "e<|im_end|>\u0301", SpecialTokens::Parse), expected);
}

TEST(ByteLevelTokenizer, NothingThatIsWrittenBecomesStructureUnlessParsed) {
  for (TokenId id = kFirstControlToken; id < 384; ++id) {
    const std::string spelling(tiny().bytes_of(id).value());
    const std::string text = "see " + spelling + spelling + "\n";
    const std::vector<TokenId> as_text = encode(tiny(), text);
    EXPECT_EQ(tiny().decode(as_text), text);
    for (const TokenId token : as_text) EXPECT_LT(token, kFirstControlToken) << spelling;

    std::vector<TokenId> expected = encode(tiny(), "see ");
    expected.insert(expected.end(), {id, id});
    for (const TokenId token : encode(tiny(), "\n")) expected.push_back(token);
    EXPECT_EQ(encode(tiny(), text, SpecialTokens::Parse), expected) << spelling;
    EXPECT_EQ(tiny().find_control_token(spelling), id);
  }
}

TEST(ByteLevelTokenizer, OnlySpecialTokensAreHidden) {
  EXPECT_EQ(tiny().vocabulary_size(), 384u);
  EXPECT_TRUE(tiny().is_special(tiny().find_control_token("<|im_end|>").value()));
  EXPECT_FALSE(tiny().is_special(tiny().find_control_token("<think>").value()));
  EXPECT_FALSE(tiny().is_special(kFirstControlToken - 1));
  EXPECT_FALSE(tiny().is_special(384));
  EXPECT_FALSE(tiny().is_special(-1));
  EXPECT_FALSE(tiny().bytes_of(384));
}

TEST(ByteLevelTokenizer, WholeTokensAreKeptWhereMergesAreIgnored) {
  json file = tiny_file();
  file["model"]["merges"] = json::array({json::array({"t", "h"})});
  file["model"]["vocab"]["th"] = 374;
  for (json& token : file["added_tokens"]) token["id"] = token["id"].get<int>() + 1;
  const std::vector<TokenId> merged = encode(*open(file), "the");
  EXPECT_EQ(merged.size(), 2u);
  file["model"]["ignore_merges"] = true;
  const std::vector<TokenId> whole = encode(*open(file), "the");
  EXPECT_EQ(whole.size(), 1u);
}

TEST(ByteLevelTokenizer, AVocabularyMayBeWithoutControlTokens) {
  json file = tiny_file();
  file.erase("added_tokens");
  const std::unique_ptr<Tokenizer> tokenizer = open(file);
  EXPECT_EQ(tokenizer->vocabulary_size(), 374u);
  EXPECT_EQ(encode(*tokenizer, "<think>", SpecialTokens::Parse),
            encode(tiny(), "<think>", SpecialTokens::AsText));
}

TEST(ByteLevelTokenizer, IllFormedUtf8IsAnErrorThatNamesTheByte) {
  for (const SpecialTokens mode : {SpecialTokens::AsText, SpecialTokens::Parse}) {
    const Result<std::vector<TokenId>> ids = tiny().encode("caf\xE9 au lait", mode);
    ASSERT_FALSE(ids);
    EXPECT_EQ(ids.error().code, ErrorCode::Usage);
    EXPECT_THAT(ids.error().what, HasSubstr("not well-formed UTF-8 at byte 3 (0xE9)"));
  }
}

// What is quadratic in the length of a text or of a piece does not end here.
TEST(ByteLevelTokenizer, HostileTextsEnd) {
  for (const std::string_view unit :
       {"a", " ", "the", "e\u0301\u0323", "\u0301", "\n", " \n", ".", "中", "\uD55C", "<|im_end|",
        "<", "<think>", "\u3000\u3000a", "'s", "7"}) {
    std::string text, storage;
    while (text.size() < (1 << 18)) text += unit;
    for (const SpecialTokens mode : {SpecialTokens::AsText, SpecialTokens::Parse})
      EXPECT_TRUE(tiny().decode(encode(tiny(), text, mode)) == to_nfc(text, storage)) << unit;
  }
}

TEST(ByteLevelTokenizerFull, AsMuchTextAsThereMayBeIsOnePiece) {
  const std::string text(limits::kPromptBytes, ' ');
  EXPECT_TRUE(tiny().decode(encode(tiny(), text)) == text);
}

struct Refusal {
  std::string name;
  std::function<void(json& file)> change;
  std::string message;
};

// Each stands for a feature of tokenizers that would change tokens and that we do not have.
const Refusal kRefusals[] = {
    {"Version", [](json& f) { f["version"] = "2.0"; }, "version: found \"2.0\", expected \"1.0\""},
    {"Truncation", [](json& f) { f["truncation"] = {{"max_length", 5}}; }, "truncation: found {"},
    {"Padding", [](json& f) { f["padding"] = {{"pad_id", 5}}; }, "padding: found {"},
    {"UnknownField", [](json& f) { f["prefix"] = 1; }, "prefix: found a field"},
    {"Normalizer", [](json& f) { f["normalizer"] = {{"type", "NFKC"}}; },
     "normalizer.type: found \"NFKC\", expected \"NFC\""},
    {"NormalizerSequence",
     [](json& f) { f["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array()}}; },
     "normalizer.type: found \"Sequence\""},
    {"NoPreTokenizer", [](json& f) { f["pre_tokenizer"] = nullptr; }, "pre_tokenizer: found null"},
    {"ByteLevelAlone", [](json& f) { f["pre_tokenizer"] = f["pre_tokenizer"]["pretokenizers"][1]; },
     "pre_tokenizer.type: found \"ByteLevel\""},
    {"ThreeSteps",
     [](json& f) {
       json& steps = f["pre_tokenizer"]["pretokenizers"];
       steps.push_back(steps[1]);
     },
     "pre_tokenizer.pretokenizers: found ["},
    {"Digits", [](json& f) { f["pre_tokenizer"]["pretokenizers"][0] = {{"type", "Digits"}}; },
     "pre_tokenizer.pretokenizers[0].type: found \"Digits\""},
    {"NoObject", [](json& f) { f["pre_tokenizer"]["pretokenizers"][1] = 7; },
     "pre_tokenizer.pretokenizers[1]: found no object"},
    {"Removed", [](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; },
     "pretokenizers[0].behavior: found \"Removed\""},
    {"Inverted", [](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["invert"] = true; },
     "pretokenizers[0].invert: found true"},
    {"Pattern",
     [](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "[a-z&&[^x]]"; },
     "pretokenizers[0].pattern.Regex: found \"[a-z&&[^x]]\""},
    {"StringPattern",
     [](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", " "}}; },
     "pretokenizers[0].pattern.Regex: found nothing"},
    {"PrefixSpace",
     [](json& f) { f["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; },
     "pretokenizers[1].add_prefix_space: found true"},
    {"OwnPattern", [](json& f) { f["pre_tokenizer"]["pretokenizers"][1]["use_regex"] = true; },
     "pretokenizers[1].use_regex: found true"},
    {"OwnPatternByDefault",
     [](json& f) { f["pre_tokenizer"]["pretokenizers"][1].erase("use_regex"); },
     "pretokenizers[1].use_regex: found nothing"},
    {"Template", [](json& f) { f["post_processor"] = {{"type", "TemplateProcessing"}}; },
     "post_processor.type: found \"TemplateProcessing\""},
    {"Decoder", [](json& f) { f["decoder"] = {{"type", "Metaspace"}}; },
     "decoder.type: found \"Metaspace\""},
    {"NoDecoder", [](json& f) { f.erase("decoder"); }, "decoder: found nothing"},
    {"Unigram", [](json& f) { f["model"]["type"] = "Unigram"; },
     "model.type: found \"Unigram\", expected \"BPE\""},
    {"NoType", [](json& f) { f["model"].erase("type"); }, "model.type: found nothing"},
    {"Dropout", [](json& f) { f["model"]["dropout"] = 0.1; }, "model.dropout: found 0.1"},
    {"UnknownToken", [](json& f) { f["model"]["unk_token"] = "<unk>"; },
     "model.unk_token: found \"<unk>\""},
    {"FusedUnknown", [](json& f) { f["model"]["fuse_unk"] = true; }, "model.fuse_unk: found true"},
    {"ByteFallback", [](json& f) { f["model"]["byte_fallback"] = true; },
     "model.byte_fallback: found true"},
    {"Prefix", [](json& f) { f["model"]["continuing_subword_prefix"] = "##"; },
     "model.continuing_subword_prefix: found \"##\""},
    {"Suffix", [](json& f) { f["model"]["end_of_word_suffix"] = "</w>"; },
     "model.end_of_word_suffix: found \"</w>\""},
    {"IgnoreMerges", [](json& f) { f["model"]["ignore_merges"] = 1; },
     "model.ignore_merges: found 1"},
    {"UnknownModelField", [](json& f) { f["model"]["cache"] = 1; }, "model.cache: found a field"},
    {"NoVocabulary", [](json& f) { f["model"]["vocab"] = json::object(); },
     "model.vocab: found nothing"},
    {"NoLetter", [](json& f) { f["model"]["vocab"]["a b"] = 374; },
     "model.vocab: found \"a b\", expected letters"},
    {"EmptyToken", [](json& f) { f["model"]["vocab"][""] = 374; }, "model.vocab: found \"\""},
    {"Gap", [](json& f) { f["model"]["vocab"]["zzzz"] = 375; },
     "model.vocab: found id 375 of \"zzzz\", expected ids from 0 to 374"},
    {"SharedId", [](json& f) { f["model"]["vocab"]["zzzz"] = 5; }, "model.vocab: found id 5 of "},
    {"MissingByte",
     [](json& f) {
       f["model"]["vocab"].erase("!");  // id 0
       f["model"]["vocab"]["zzzz"] = 0;
       f["model"]["merges"] = json::array();
     },
     "model.vocab: 1 of the 256 single bytes are no token: 0x21"},
    {"MergeOfNoToken", [](json& f) { f["model"]["merges"][0] = json::array({"q", "x"}); },
     "model.merges[0]: found \"q\" and \"x\", expected two tokens"},
    {"MergeOfNoLetter", [](json& f) { f["model"]["merges"][3] = json::array({"\n", "x"}); },
     "model.merges[3]: found \"\\n\" and \"x\", expected letters"},
    {"MergeTwice", [](json& f) { f["model"]["merges"][7] = f["model"]["merges"][2]; },
     "which an earlier merge has already"},
    {"AddedTokensNoList", [](json& f) { f["added_tokens"] = 5; }, "added_tokens: found 5"},
    {"AddedTokenNoObject", [](json& f) { f["added_tokens"][2] = 5; },
     "added_tokens[2]: found no object"},
    {"AddedTokenOfTheVocabulary", [](json& f) { f["added_tokens"][2]["id"] = 5; },
     "added_tokens[2].id: found 5, expected an integer from 374 to 383"},
    {"AddedTokenBehindAGap", [](json& f) { f["added_tokens"][9]["id"] = 384; },
     "added_tokens[9].id: found 384"},
    {"AddedTokensShareAnId", [](json& f) { f["added_tokens"][2]["id"] = 375; },
     "added_tokens[2].id: found 375, expected an id that no token before it has"},
    {"AddedTokensShareASpelling", [](json& f) { f["added_tokens"][2]["content"] = "<think>"; },
     "added_tokens: the control tokens 376 and 378 are both spelled \"<think>\""},
    {"AddedTokenEmpty", [](json& f) { f["added_tokens"][2]["content"] = ""; },
     "added_tokens[2].content: found \"\""},
    {"AddedTokenTooLong", [](json& f) { f["added_tokens"][2]["content"] = std::string(257, 'x'); },
     "the control token 376 is spelled with 257 bytes, expected at most 256"},
    {"Normalized", [](json& f) { f["added_tokens"][2]["normalized"] = true; },
     "added_tokens[2].normalized: found true"},
    {"LeftStrip", [](json& f) { f["added_tokens"][2]["lstrip"] = true; },
     "added_tokens[2].lstrip: found true"},
    {"RightStrip", [](json& f) { f["added_tokens"][2]["rstrip"] = true; },
     "added_tokens[2].rstrip: found true"},
    {"SingleWord", [](json& f) { f["added_tokens"][2]["single_word"] = true; },
     "added_tokens[2].single_word: found true"},
    {"Special", [](json& f) { f["added_tokens"][2]["special"] = 1; },
     "added_tokens[2].special: found 1"},
    {"UnknownAddedField", [](json& f) { f["added_tokens"][2]["weight"] = 1; },
     "added_tokens[2].weight: found a field"},
};

class ByteLevelRefusals : public testing::TestWithParam<Refusal> {};

TEST_P(ByteLevelRefusals, NameTheField) {
  json file = tiny_file();
  GetParam().change(file);
  const Result<std::unique_ptr<Tokenizer>> tokenizer =
      make_byte_level_tokenizer(file.dump(), "dir/t.json");
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::BadModel);
  EXPECT_THAT(tokenizer.error().what, StartsWith("dir/t.json: "));
  EXPECT_THAT(tokenizer.error().what, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(All, ByteLevelRefusals, testing::ValuesIn(kRefusals),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace deltafin::text
