#include "cli/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/limits.h"

namespace deltafin::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One token per byte, which is all that these tests need.
class ByteTokenizer final : public text::Tokenizer {
 public:
  Result<std::vector<TokenId>> encode(std::string_view text,
                                      text::SpecialTokens mode) const override {
    last_mode = mode;
    if (text == "\xff") return fail(ErrorCode::Usage, "the text is not UTF-8");
    return std::vector<TokenId>(text.begin(), text.end());
  }
  Result<std::string_view> bytes_of(TokenId) const override { return std::string_view("x"); }
  std::optional<TokenId> find_control_token(std::string_view) const override {
    return std::nullopt;
  }
  bool is_special(TokenId) const override { return false; }
  size_t vocabulary_size() const override { return 128; }

  mutable text::SpecialTokens last_mode = text::SpecialTokens::AsText;
};

checkpoint::ModelContract contract() {
  checkpoint::ModelContract contract;
  checkpoint::KimiConfig kimi;
  kimi.vocab_size = 128;
  contract.family = kimi;
  contract.max_positions = 5;
  return contract;
}

PromptFlags text_flags(const std::string& text) {
  PromptFlags flags;
  flags.text = text;
  return flags;
}

TEST(PromptFlags, NeedExactlyOneSource) {
  PromptFlags flags;
  EXPECT_THAT(flags.check().error().what, HasSubstr("there is no prompt\n  give --prompt TEXT"));
  flags.text = "";
  EXPECT_TRUE(flags.check());
  flags.file = "x";
  EXPECT_THAT(flags.check().error().what, HasSubstr("more than one prompt"));
  flags.text.reset();
  EXPECT_TRUE(flags.check());
  flags.ids = {1};
  EXPECT_FALSE(flags.check());
  flags.file.reset();
  EXPECT_TRUE(flags.check());
}

TEST(PromptFlags, DoNotParseControlTokensInIds) {
  PromptFlags flags;
  flags.ids = {1};
  flags.parse_special = true;
  EXPECT_EQ(flags.check().error().code, ErrorCode::Usage);
}

TEST(PromptTokens, AreTheTextsOwn) {
  const ByteTokenizer tokenizer;
  EXPECT_THAT(prompt_tokens(text_flags("ab"), "ab", &tokenizer, contract()).value(),
              ElementsAre('a', 'b'));
  EXPECT_EQ(tokenizer.last_mode, text::SpecialTokens::AsText);
  PromptFlags special = text_flags("ab");
  special.parse_special = true;
  EXPECT_TRUE(prompt_tokens(special, "ab", &tokenizer, contract()));
  EXPECT_EQ(tokenizer.last_mode, text::SpecialTokens::Parse);
}

TEST(PromptTokens, MayBeIdsWithoutATokenizer) {
  PromptFlags flags;
  flags.ids = {3, 1, 2};
  EXPECT_THAT(prompt_tokens(flags, "", nullptr, contract()).value(), ElementsAre(3, 1, 2));
}

TEST(PromptTokens, NameTheFlagWhoseTextIsUnusable) {
  const ByteTokenizer tokenizer;
  EXPECT_THAT(prompt_tokens(text_flags(""), "", &tokenizer, contract()).error().what,
              HasSubstr("--prompt: the prompt is empty"));
  EXPECT_THAT(prompt_tokens(text_flags("\xff"), "\xff", &tokenizer, contract()).error().what,
              HasSubstr("--prompt: the text is not UTF-8"));
}

TEST(PromptTokens, AreInTheVocabularyAndFitTheModel) {
  PromptFlags outside, many;
  outside.ids = {1, 128};
  EXPECT_EQ(prompt_tokens(outside, "", nullptr, contract()).error().what,
            "--ids: found token id 128 in place 2, expected 0 to 127: the model has 128 of them");
  many.ids = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(prompt_tokens(many, "", nullptr, contract()).error().what,
              HasSubstr("6 tokens, more than the 5 positions"));
}

TEST(ReadPromptFile, KeepsEveryByte) {
  const std::string path = testing::TempDir() + "/deltafin-prompt-test.txt";
  const std::string text("line\n\0\xff tail\n", 13);
  std::ofstream(path, std::ios::binary) << text;
  const CancelToken cancel;
  EXPECT_EQ(read_prompt_file(path, cancel), text);
  std::remove(path.c_str());
}

TEST(ReadPromptFile, SaysWhatTheSystemSays) {
  const CancelToken cancel;
  const Result<std::string> missing = read_prompt_file("/nowhere/prompt.txt", cancel);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::Io);
  EXPECT_EQ(missing.error().what, "cannot open /nowhere/prompt.txt: No such file or directory");
  EXPECT_THAT(read_prompt_file("/", cancel).error().what,
              HasSubstr("cannot read /: Is a directory"));
}

TEST(ReadPromptFile, StopsAtTheLimit) {
  const std::string path = testing::TempDir() + "/deltafin-prompt-test-large.txt";
  std::ofstream(path).close();
  std::filesystem::resize_file(path, limits::kPromptBytes + 1);
  const CancelToken cancel;
  const Result<std::string> text = read_prompt_file(path, cancel);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::Usage);
  EXPECT_THAT(text.error().what, HasSubstr("more than the 16777216 bytes"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace deltafin::cli
