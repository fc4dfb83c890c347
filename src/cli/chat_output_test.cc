#include "cli/chat_output.h"

#include <gtest/gtest.h>

#include "text/chat/test_channels.h"

namespace deltafin::cli {
namespace {

using text::SpecialTokens;

class ChatOutputTest : public testing::Test {
 protected:
  ChatOutput open(bool shown, bool dimmed = false) {
    ChatPrompt prompt{};
    prompt.chat_template = text::find_template("kimi-k3");
    const auto show = [this](std::string_view more) { shown_ += more; };
    return ChatOutput::create(*tokenizer_, prompt, shown ? ChatOutput::Sink(show) : nullptr, dimmed)
        .value();
  }
  std::string feed(ChatOutput& output, const std::string& text) {
    std::string answer;
    const auto ids = tokenizer_->encode(text, SpecialTokens::Parse).value();
    for (const TokenId id : ids) {
      answer += output.push(id);
    }
    return answer;
  }

  std::unique_ptr<text::Tokenizer> tokenizer_ =
      text::byte_tokenizer({"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"});
  std::string shown_;
};

constexpr const char* kAnswer = "<|close|>think<|sep|><|open|>response<|sep|>four";

TEST_F(ChatOutputTest, AnswersAreReturnedAndReasoningIsShownOnALineOfItsOwn) {
  ChatOutput output = open(true);
  EXPECT_EQ(feed(output, "two and two"), "");
  EXPECT_EQ(shown_, "two and two");
  EXPECT_EQ(feed(output, kAnswer), "four");
  EXPECT_EQ(shown_, "two and two\n");
  EXPECT_EQ(output.finish(text::OutputEnd::EndOfTurn), "");
  EXPECT_EQ(output.reasoning(), "two and two");
}

TEST_F(ChatOutputTest, OnATerminalReasoningIsDim) {
  ChatOutput output = open(true, true);
  feed(output, "a\n");
  EXPECT_EQ(shown_, "\x1b[2ma\x1b[22m\x1b[2m\n\x1b[22m");
  output.finish(text::OutputEnd::CutOff);
  EXPECT_EQ(output.channel(), text::Channel::Reasoning);
}

TEST_F(ChatOutputTest, HiddenReasoningIsKeptForTheReport) {
  ChatOutput output = open(false);
  EXPECT_EQ(feed(output, std::string("hm") + kAnswer), "four");
  EXPECT_EQ(shown_, "");
  EXPECT_EQ(output.reasoning(), "hm");
}

TEST_F(ChatOutputTest, CallsAreKept) {
  ChatOutput output = open(false);
  feed(output, std::string(kAnswer) +
                   "<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"f\" "
                   "index=\"1\"<|sep|><|close|>call<|sep|>");
  ASSERT_EQ(output.calls().size(), 1u);
  EXPECT_EQ(output.calls()[0], (text::ParsedCall{"", "f", "{}"}));
}

TEST_F(ChatOutputTest, AnIdThatTheTokenizerDoesNotKnowIsAReplacementCharacter) {
  ChatOutput output = open(false);
  feed(output, kAnswer);
  EXPECT_EQ(output.push(100'000), "\uFFFD");
}

}  // namespace
}  // namespace deltafin::cli
