#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "io/simulated.h"
#include "text/test_text.h"

namespace deltafin::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// A model directory "m" in memory, with a vocabulary of 257 + 256 tokens unless said otherwise.
class OpenTokenizerTest : public testing::Test {
 protected:
  OpenTokenizerTest() { storage_.add_file("m/config.json", std::string("{}")); }

  void add(const std::string& name, const std::string& text) {
    storage_.add_file("m/" + name, text);
  }
  Result<std::unique_ptr<Tokenizer>> open() const { return open_tokenizer(storage_, "m"); }
  Error error_of_open() const {
    Result<std::unique_ptr<Tokenizer>> tokenizer = open();
    if (tokenizer) return {ErrorCode::Usage, "opened"};
    return tokenizer.error();
  }

  const std::string byte_level_ =
      io::read_text(io::PosixStorage(),
                    DELTAFIN_SOURCE_DIR "/tests/golden/tiny-tokenizer/tokenizer.json",
                    limits::kConfigBytes)
          .value();
  const std::string ranks_ = rank_file_of(tokens_with({"ab"}));
  io::SimulatedStorage storage_;
};

TEST_F(OpenTokenizerTest, ControlTokensFollowTheRanks) {
  add("tiktoken.model", ranks_);
  const Result<std::unique_ptr<Tokenizer>> tokenizer = open();
  ASSERT_TRUE(tokenizer) << tokenizer.error().what;
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 513u);
  EXPECT_EQ((*tokenizer)->bytes_of(256), "ab");
  EXPECT_EQ((*tokenizer)->bytes_of(257), "[BOS]");
  EXPECT_FALSE((*tokenizer)->is_special(256));
  EXPECT_TRUE((*tokenizer)->is_special(257));
  EXPECT_TRUE((*tokenizer)->is_special(512));
  EXPECT_FALSE((*tokenizer)->is_special(513));
}

TEST_F(OpenTokenizerTest, TakesTheNamesBesideTheRanks) {
  add("tiktoken.model", ranks_);
  add("tokenizer_config.json", R"({"added_tokens_decoder": {"259": {"content": "<|im_end|>"}}})");
  const Result<std::unique_ptr<Tokenizer>> tokenizer = open();
  ASSERT_TRUE(tokenizer) << tokenizer.error().what;
  EXPECT_EQ((*tokenizer)->bytes_of(259), "<|im_end|>");
  EXPECT_EQ((*tokenizer)->bytes_of(257), "<|reserved_token_257|>");
}

TEST_F(OpenTokenizerTest, FindsARankFileOfAnotherName) {
  add("kimi.tiktoken", ranks_);
  EXPECT_TRUE(open());
  add("tiktoken.model", rank_file_of(tokens_with({})));  // the usual name comes first
  EXPECT_EQ(open().value()->vocabulary_size(), 512u);
}

TEST_F(OpenTokenizerTest, SaysWhatItLookedFor) {
  const Error error = error_of_open();
  EXPECT_EQ(error.code, ErrorCode::BadModel);
  EXPECT_THAT(error.what, AllOf(StartsWith("m: "), HasSubstr("tiktoken.model"),
                                HasSubstr("tokenizer.json"), HasSubstr("*.tiktoken")));
}

TEST_F(OpenTokenizerTest, ReadsATokenizerJson) {
  add("tokenizer.json", byte_level_);
  const Result<std::unique_ptr<Tokenizer>> tokenizer = open();
  ASSERT_TRUE(tokenizer) << tokenizer.error().what;
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 384u);
}

TEST_F(OpenTokenizerTest, TakesTheFileThatTheModelWasPublishedWith) {
  add("other.tiktoken", ranks_);
  add("tokenizer.json", byte_level_);  // such as that of Qwen, which has both
  EXPECT_EQ(open().value()->vocabulary_size(), 384u);
  add("tiktoken.model", ranks_);
  EXPECT_EQ(open().value()->vocabulary_size(), 513u);
}

TEST_F(OpenTokenizerTest, NamesTheTokenizerJsonThatIsWrong) {
  add("tokenizer.json", "{}");
  EXPECT_EQ(error_of_open().code, ErrorCode::BadModel);
  EXPECT_THAT(error_of_open().what, StartsWith("m/tokenizer.json: "));
}

TEST_F(OpenTokenizerTest, DoesNotChooseBetweenTwoRankFiles) {
  add("a.tiktoken", ranks_);
  add("b.tiktoken", ranks_);
  const Error error = error_of_open();
  EXPECT_EQ(error.code, ErrorCode::BadModel);
  EXPECT_THAT(error.what, AllOf(HasSubstr("a.tiktoken"), HasSubstr("b.tiktoken")));
}

TEST_F(OpenTokenizerTest, NamesTheFileThatIsWrong) {
  add("tiktoken.model", "IQ== 1\n");
  EXPECT_THAT(error_of_open().what, StartsWith("m/tiktoken.model: line 1: "));
  add("tiktoken.model", ranks_);
  add("tokenizer_config.json", "{");
  EXPECT_THAT(error_of_open().what, StartsWith("m/tokenizer_config.json: "));
}

TEST_F(OpenTokenizerTest, AConfigOfAnotherVocabularyIsRefused) {
  add("tiktoken.model", ranks_);
  add("tokenizer_config.json", R"({"added_tokens_decoder": {"163584": {"content": "[BOS]"}}})");
  EXPECT_THAT(error_of_open().what,
              HasSubstr("\"163584\", but the control tokens of this vocabulary are 257..512"));
}

TEST_F(OpenTokenizerTest, AnEnormousConfigIsRefused) {
  add("tiktoken.model", ranks_);
  add("tokenizer_config.json", std::string(limits::kConfigBytes + 1, ' '));
  EXPECT_EQ(error_of_open().code, ErrorCode::BadModel);
}

TEST_F(OpenTokenizerTest, AReadErrorIsAnIoError) {
  add("tiktoken.model", ranks_);
  storage_.set_faults({.ranges = {{.file = "tiktoken.model", .offset = 100, .size = 1}}});
  EXPECT_EQ(error_of_open().code, ErrorCode::Io);
}

TEST_F(OpenTokenizerTest, AMissingDirectoryIsAnIoError) {
  const Result<std::unique_ptr<Tokenizer>> tokenizer = open_tokenizer(storage_, "nowhere");
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::Io);
}

}  // namespace
}  // namespace deltafin::text
