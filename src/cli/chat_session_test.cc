#include "cli/chat_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat/test_channels.h"

namespace deltafin::cli {
namespace {

using testing::HasSubstr;

class ChatSessionTest : public testing::Test {
 protected:
  ChatSession open(const char* template_name, std::optional<bool> thinking = std::nullopt) {
    ChatSetup setup{};
    setup.chat_template = text::find_template(template_name);
    setup.options.thinking = thinking;
    ChatFlags flags;
    flags.system = "Be brief.";
    return {*tokenizer_, setup, beginning_of_chat(flags)};
  }
  std::string text_of(const std::vector<TokenId>& ids) { return tokenizer_->decode(ids).value(); }

  std::unique_ptr<text::Tokenizer> tokenizer_ =
      text::byte_tokenizer({"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "<|im_start|>",
                            "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"});
};

TEST_F(ChatSessionTest, ThePromptIsTheWholeConversationAndAsksOfTheModelItsNextTurn) {
  ChatSession session = open("qwen3");
  EXPECT_EQ(session.turn_count(), 0u);
  session.add_turn("one", "because", "two");
  EXPECT_EQ(session.turn_count(), 1u);
  EXPECT_EQ(text_of(session.prompt_for("three").value().ids),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\none<|im_end|>\n"
            "<|im_start|>assistant\ntwo<|im_end|>\n<|im_start|>user\nthree<|im_end|>\n"
            "<|im_start|>assistant\n");
  // Asking alone changes nothing.
  EXPECT_EQ(session.turn_count(), 1u);
}

TEST_F(ChatSessionTest, AllOfAPromptLastsWhereTheTemplateKeepsItsTurns) {
  ChatSession session = open("kimi-k3");
  const text::TurnPrompt first = session.prompt_for("one").value();
  EXPECT_EQ(first.lasting, first.ids.size());
  session.add_turn("one", "because", "two");
  EXPECT_THAT(text_of(session.prompt_for("three").value().ids),
              testing::StartsWith(text_of(first.ids) + "because<|close|>think<|sep|>"));
}

TEST_F(ChatSessionTest, WhatOnlyTheNewestTurnHasDoesNotLast) {
  ChatSession session = open("qwen3", false);
  const text::TurnPrompt first = session.prompt_for("one").value();
  const std::string text = text_of(first.ids);
  const std::string lasting =
      text_of({first.ids.begin(), first.ids.begin() + ptrdiff_t(first.lasting)});
  EXPECT_EQ(text, lasting + "<think>\n\n</think>\n\n");
  session.add_turn("one", "", "two");
  EXPECT_THAT(text_of(session.prompt_for("three").value().ids),
              testing::StartsWith(lasting + "two<|im_end|>"));
}

TEST_F(ChatSessionTest, WhatTheModelCannotReadIsRefused) {
  const ChatSession session = open("kimi-k3");
  EXPECT_THAT(session.prompt_for("").error().what, HasSubstr("the message is empty"));
  EXPECT_THAT(session.prompt_for("a\xff").error().what, HasSubstr("not well-formed UTF-8"));
}

TEST_F(ChatSessionTest, BeginsAnewWithItsSystemMessage) {
  ChatSession session = open("kimi-k3");
  const std::vector<TokenId> first = session.prompt_for("one").value().ids;
  session.add_turn("one", "", "two");
  session.clear();
  EXPECT_EQ(session.prompt_for("one").value().ids, first);
}

TEST_F(ChatSessionTest, ComesBackFromItsJson) {
  ChatSession session = open("kimi-k3");
  session.add_turn("\"one\"\n", "because", "zw\xC3\xB6lf");
  session.add_turn("and?", "", "");
  ChatSession other = open("kimi-k3");
  ASSERT_TRUE(other.load_json(session.to_json()));
  EXPECT_EQ(other.turn_count(), 2u);
  EXPECT_EQ(other.prompt_for("x").value().ids, session.prompt_for("x").value().ids);
  EXPECT_EQ(other.to_json(), session.to_json());
}

TEST_F(ChatSessionTest, RefusesOtherFilesAndStaysAsItWas) {
  ChatSession session = open("kimi-k3");
  session.add_turn("one", "", "two");
  const std::string before = session.to_json();
  for (const char* json :
       {"", "[]", "{\"schema\":\"x\",\"messages\":[]}", "{\"schema\":\"deltafin.chat.v1\"}",
        "{\"schema\":\"deltafin.chat.v1\",\"messages\":[{\"role\":\"king\"}]}"}) {
    const Status loaded = session.load_json(json);
    ASSERT_FALSE(loaded) << json;
    EXPECT_EQ(loaded.error().code, ErrorCode::Usage) << json;
    EXPECT_EQ(session.to_json(), before);
  }
}

TEST(ChooseReuse, TakesTheLongestStateThatThePromptGoesOnFrom) {
  using Ids = std::vector<TokenId>;
  const Ids prompt = {1, 2, 3, 4};
  EXPECT_EQ(choose_reuse(prompt, Ids{1, 2, 3}, Ids{1, 2}), ReuseFrom::Sequence);
  EXPECT_EQ(choose_reuse(prompt, Ids{1, 2, 5}, Ids{1, 2}), ReuseFrom::Border);
  EXPECT_EQ(choose_reuse(prompt, Ids{1}, Ids{1, 2}), ReuseFrom::Border);
  EXPECT_EQ(choose_reuse(prompt, Ids{1, 5}, Ids{2}), ReuseFrom::Nothing);
  EXPECT_EQ(choose_reuse(prompt, Ids{}, Ids{}), ReuseFrom::Nothing);
}

TEST(ChooseReuse, LeavesAtLeastOneTokenToRead) {
  using Ids = std::vector<TokenId>;
  const Ids prompt = {1, 2};
  EXPECT_EQ(choose_reuse(prompt, Ids{1, 2}, Ids{1}), ReuseFrom::Border);
  EXPECT_EQ(choose_reuse(prompt, Ids{1, 2, 3}, Ids{}), ReuseFrom::Nothing);
}

}  // namespace
}  // namespace deltafin::cli
