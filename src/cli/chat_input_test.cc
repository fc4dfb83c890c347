#include "cli/chat_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deltafin::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ChatInput, WhatBeginsWithNoSlashIsAMessageAsItIs) {
  EXPECT_EQ(parse_chat_input("a /new b ").value(), ChatInput(ChatMessage{"a /new b "}));
  EXPECT_EQ(parse_chat_input(" /new").value(), ChatInput(ChatMessage{" /new"}));
}

TEST(ChatInput, TwoSlashesSendOne) {
  EXPECT_EQ(parse_chat_input("//new").value(), ChatInput(ChatMessage{"/new"}));
  EXPECT_EQ(parse_chat_input("//").value(), ChatInput(ChatMessage{"/"}));
}

TEST(ChatInput, CommandsTakeWhatTheyNeed) {
  using Kind = ChatCommand::Kind;
  EXPECT_EQ(parse_chat_input("/new").value(), ChatInput(ChatCommand{Kind::New}));
  EXPECT_EQ(parse_chat_input("/stats ").value(), ChatInput(ChatCommand{Kind::Stats}));
  EXPECT_EQ(parse_chat_input("/help").value(), ChatInput(ChatCommand{Kind::Help}));
  EXPECT_EQ(parse_chat_input("/save  my talk ").value(),
            ChatInput(ChatCommand{Kind::Save, "my talk"}));
  EXPECT_EQ(parse_chat_input("/load x").value(), ChatInput(ChatCommand{Kind::Load, "x"}));
}

TEST(ChatInput, WhatIsNoCommandIsRefusedWithThoseThatAre) {
  const Result<ChatInput> unknown = parse_chat_input("/sav x");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::Usage);
  EXPECT_THAT(unknown.error().what,
              AllOf(HasSubstr("there is no command /sav, did you mean /save?"),
                    HasSubstr("/new, /save FILE, /load FILE, /stats, /help")));
  EXPECT_THAT(parse_chat_input("/save").error().what, HasSubstr("/save needs the name of a file"));
  EXPECT_THAT(parse_chat_input("/new x").error().what, HasSubstr("/new takes nothing"));
  EXPECT_THAT(parse_chat_input("/").error().what, HasSubstr("there is no command /"));
}

TEST(ChatInput, TheHelpNamesEveryCommand) {
  EXPECT_THAT(chat_input_help(),
              AllOf(HasSubstr("/new "), HasSubstr("/save FILE "), HasSubstr("/load FILE "),
                    HasSubstr("/stats "), HasSubstr("/help ")));
}

TEST(ChatLines, ABackslashAtTheEndGoesOnInTheNextLine) {
  ChatLines lines;
  EXPECT_TRUE(lines.add("one"));
  EXPECT_EQ(lines.take(), "one");
  EXPECT_FALSE(lines.add("a\\"));
  EXPECT_TRUE(lines.is_open());
  EXPECT_FALSE(lines.add("\\"));
  EXPECT_TRUE(lines.add("c\\ d"));
  EXPECT_EQ(lines.take(), "a\n\nc\\ d");
  EXPECT_FALSE(lines.is_open());
  EXPECT_TRUE(lines.add(""));
  EXPECT_EQ(lines.take(), "");
}

}  // namespace
}  // namespace deltafin::cli
