#include "text/chat/channel_parser.h"

#include <gtest/gtest.h>

#include "text/chat/kimi_k3_channels.h"
#include "text/chat/qwen_channels.h"
#include "text/chat/test_channels.h"

namespace deltafin::text {
namespace {

ChannelSetup setup_of(ChannelFormat format, ChannelStart start) {
  ChannelSetup setup;
  setup.format = format;
  setup.start = start;
  return setup;
}
const ChannelSetup kK3 = setup_of(ChannelFormat::KimiK3, ChannelStart::Reasoning);
const ChannelSetup kK2 = setup_of(ChannelFormat::KimiK2, ChannelStart::Answer);
const ChannelSetup kQwen3 = setup_of(ChannelFormat::Qwen3, ChannelStart::Reasoning);
const ChannelSetup kQwen3Answer = setup_of(ChannelFormat::Qwen3, ChannelStart::Answer);
const ChannelSetup kQwen35 = setup_of(ChannelFormat::Qwen35, ChannelStart::Reasoning);

std::string read(const ChannelSetup& setup, const std::string& text,
                 OutputEnd end = OutputEnd::EndOfTurn) {
  TextChannels channels(setup);
  WholeOutput whole;
  whole.add(channels.push(text));
  whole.add(channels.finish(end));
  return whole.line();
}

const std::string kBegun = "t<|close|>think<|sep|><|open|>response<|sep|>a";
const std::string kTools = kBegun + "<|close|>response<|sep|><|open|>tools<|sep|>";
const std::string kHeader = "<|open|>call tool=\"f\" index=\"1\"<|sep|>";
const std::string kCall = kTools + kHeader;

TEST(Channels, ReasoningComesOutAsItComesIn) {
  for (const ChannelSetup& setup : {kK3, kQwen3, kQwen35}) {
    TextChannels channels(setup);
    for (const char* piece : {"I", " think", " so", "\u4E2D"}) {
      EXPECT_EQ(channels.push(piece),
                (std::vector{ChannelEvent{Channel::Reasoning, piece, std::nullopt}}));
    }
  }
}

TEST(Channels, AMarkerThatBreaksOffIsTextAndComesOutAtOnce) {
  TextChannels channels(kQwen3);
  EXPECT_EQ(channels.push("a </thi"),
            (std::vector{ChannelEvent{Channel::Reasoning, "a ", std::nullopt}}));
  EXPECT_EQ(channels.push("s"),
            (std::vector{ChannelEvent{Channel::Reasoning, "</this", std::nullopt}}));
}

TEST(Channels, WhereTheOutputWasCutIsKnown) {
  const auto cut_in = [](const ChannelSetup& setup, const std::string& text) {
    TextChannels channels(setup);
    channels.push(text);
    channels.finish(OutputEnd::CutOff);
    return channels.channel();
  };
  EXPECT_EQ(cut_in(kK3, "thinking"), Channel::Reasoning);
  EXPECT_EQ(cut_in(kK3, kBegun), Channel::Answer);
  EXPECT_EQ(cut_in(kK3, kCall), Channel::Call);
  EXPECT_EQ(cut_in(kK3, kCall + "<|close|>call<|sep|>"), Channel::Answer);
  EXPECT_EQ(cut_in(kQwen3, "r</think>a<tool_call>{"), Channel::Call);
  EXPECT_EQ(cut_in(kQwen3, "r</think>a<tool_call>{\"name\": \"f\"}"), Channel::Answer);
  EXPECT_EQ(cut_in(kK2, "<|tool_calls_section_begin|><|tool_call_begin|>functions.f"),
            Channel::Call);
}

TEST(Channels, CutOffAnUnfinishedCallIsDroppedAtTheEndOfTheTurnItIsAnError) {
  const std::string in_value = "<|open|>argument key=\"k\" type=\"string\"<|sep|>v";
  EXPECT_EQ(read(kK3, kCall + in_value, OutputEnd::CutOff), "t|a|");
  EXPECT_EQ(read(kK3, kCall + in_value + "<|end_of_msg|>", OutputEnd::CutOff),
            "t|a|[ f!" + kHeader + in_value + "!]");
  const std::string k2 = "a<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0";
  const std::string k2_arguments = k2 + "<|tool_call_argument_begin|>{\"k\": ";
  EXPECT_EQ(read(kK2, k2, OutputEnd::CutOff), "|a|");
  EXPECT_EQ(read(kK2, k2_arguments, OutputEnd::CutOff), "|a|");
  EXPECT_EQ(read(kK2, k2_arguments + "<|im_end|>"), "|a|[functions.f:0 f!{\"k\": !]");
  EXPECT_EQ(read(kK2, k2_arguments + "1}", OutputEnd::CutOff), "|a|[functions.f:0 f({\"k\": 1})]");
  EXPECT_EQ(read(kQwen3, "r</think><tool_call>{\"name\"", OutputEnd::CutOff), "r||");
  EXPECT_EQ(read(kQwen3, "r</think><tool_call>{\"name\""), "r||[ !{\"name\"!]");
  const std::string element = "r</think><tool_call>\n<function=f>\n<parameter=k>\nv";
  EXPECT_EQ(read(kQwen35, element, OutputEnd::CutOff), "r||");
  EXPECT_EQ(read(kQwen35, element), "r||[ f!\n<function=f>\n<parameter=k>\nv!]");
  // Without </function> nobody knows whether more arguments were to come.
  EXPECT_EQ(read(kQwen35, element + "\n</parameter>\n", OutputEnd::CutOff), "r||");
  EXPECT_EQ(read(kQwen35, element + "\n</parameter>\n</function>", OutputEnd::CutOff),
            "r||[ f({\"k\": \"v\"})]");
}

TEST(Channels, WhatMayHaveBecomeAMarkerIsTextAtTheEndOfTheTurnOnly) {
  EXPECT_EQ(read(kQwen3, "r</think>1 <"), "r|1 <|");
  EXPECT_EQ(read(kQwen3, "r</think>1 <", OutputEnd::CutOff), "r|1 |");
  EXPECT_EQ(read(kK3, kBegun + "<|close|>respo", OutputEnd::CutOff), "t|a|");
}

TEST(Channels, LineFeedsThatQwensTemplateWritesAreNotOfTheTextItself) {
  EXPECT_EQ(read(kQwen3, "<think>\n\na\n\nb\n\n</think>\n\n c\n\nd\n"), "a\n\nb| c\n\nd\n|");
  EXPECT_EQ(read(kQwen3, "\n</think>\n\na\n<tool_call>{\"name\": \"f\"}</tool_call>"),
            "|a|[ f({})]");
}

TEST(Channels, NothingBehindTheEndOfTheTurnIsSeen) {
  EXPECT_EQ(read(kK3, kBegun + "<|end_of_msg|>more<|open|>response<|sep|>x"), "t|a|");
  EXPECT_EQ(read(kK2, "a<|im_end|>b"), "|a|");
  EXPECT_EQ(read(kQwen3, "a</think>b<|im_end|>c</think>d<think>"), "a|b|");
}

TEST(Channels, K3MayLeaveOutACloseMarker) {
  EXPECT_EQ(read(kK3,
                 "t<|open|>response<|sep|>a<|open|>tools<|sep|><|open|>call tool=\"f\"<|sep|>"
                 "<|close|>call<|sep|>"),
            "t|a|[ f({})]");
  EXPECT_EQ(read(kK3, kCall + "<|open|>call tool=\"g\"<|sep|><|close|>call<|sep|>"),
            "t|a|[ f!" + kHeader + "!][ g({})]");
  EXPECT_EQ(read(kK3, kCall + "<|close|>tools<|sep|>"), "t|a|[ f!" + kHeader + "!]");
  EXPECT_EQ(read(kK3, kBegun + "<|close|>message<|sep|>x"), "t|a|");
}

TEST(Channels, K3ElementsThatMeanNothingWhereTheyStandAreText) {
  EXPECT_EQ(read(kK3, kBegun + "<|open|>b<|sep|>c<|close|>d<|sep|>"),
            "t|a<|open|>b<|sep|>c<|close|>d<|sep|>|");
  EXPECT_EQ(read(kK3, kBegun + "<|open|><|open|>tools<|sep|>x"), "t|a<|open|>|");
  EXPECT_EQ(read(kK3, kTools + "<|open|>note<|sep|>x<|close|>note<|sep|><|open|>call "
                               "tool=\"f\"<|sep|><|close|>call<|sep|>"),
            "t|a|[ f({})]");
}

TEST(Channels, K3AttributesMayBeBroken) {
  EXPECT_EQ(read(kK3, kTools + "<|open|>call tool=f<|sep|><|close|>call<|sep|>"),
            "t|a|[ !<|open|>call tool=f<|sep|>!]");
  EXPECT_EQ(read(kK3, kTools + "<|open|>call tool=\"f<|sep|><|close|>call<|sep|>"),
            "t|a|[ !<|open|>call tool=\"f<|sep|>!]");
}

TEST(Channels, AnAnswerMayTalkOfThinkingTags) {
  EXPECT_EQ(read(kQwen3Answer, "the tag <think> opens"), "|the tag <think> opens|");
  EXPECT_EQ(read(kQwen3Answer, "\n<think>r</think>a"), "r|a|");  // but at its beginning it thinks
}

TEST(Channels, FunctionTagsAreCallsOnlyWhereToolsWereDeclared) {
  const std::string text = "r</think>write <function=f>\n</function>";
  EXPECT_EQ(read(kQwen35, text), "r|write <function=f>\n</function>|");
  ChannelSetup with_tools = kQwen35;
  with_tools.tools.push_back(parse_json(R"({"name": "f"})", JsonDialect::Strict).value());
  EXPECT_EQ(read(with_tools, text), "r|write |[ f({})]");
}

TEST(Channels, ValuesHaveTheTypesThatTheToolDeclares) {
  ChannelSetup setup = kQwen35;
  setup.start = ChannelStart::Answer;
  setup.tools.push_back(parse_json(R"({"function": {"name": "f", "parameters": {"properties": {
          "i": {"type": "integer"}, "b": {"type": "boolean"}, "a": {"type": "array"},
          "s": {"type": "string"}, "m": {"type": ["string", "null"]},
          "n": {"type": ["number", "boolean"]}, "x": {}}}}})",
                                   JsonDialect::Strict)
                            .value());
  const auto value = [&](const std::string& key, const std::string& text) {
    const std::string line = read(setup, "<tool_call><function=f>\n<parameter=" + key + ">\n" +
                                             text + "\n</parameter>\n</function></tool_call>");
    const std::string begin = "||[ f({\"" + key + "\": ";
    EXPECT_TRUE(line.starts_with(begin) && line.ends_with("})]")) << line;
    return line.substr(begin.size(), line.size() - begin.size() - 3);
  };
  EXPECT_EQ(value("i", " 7 "), "7");
  EXPECT_EQ(value("i", "seven"), "\"seven\"");
  EXPECT_EQ(value("i", "[7]"), "\"[7]\"");
  EXPECT_EQ(value("i", "NaN"), "\"NaN\"");
  EXPECT_EQ(value("b", "False"), "false");
  EXPECT_EQ(value("a", "[1, {\"k\": 2}]"), "[1, {\"k\": 2}]");
  EXPECT_EQ(value("s", "7"), "\"7\"");
  EXPECT_EQ(value("s", "null"), "\"null\"");
  EXPECT_EQ(value("m", "null"), "null");
  EXPECT_EQ(value("n", "true"), "true");
  EXPECT_EQ(value("n", "1.50"), "1.5");
  EXPECT_EQ(value("x", "7"), "\"7\"");
}

// What took the square of its time would not end.
TEST(Channels, HostileOutputTakesLinearTime) {
  const auto repeated = [](std::string_view text) {
    std::string all;
    while (all.size() < 500'000) all += text;
    return all;
  };
  for (const ChannelSetup& setup : {kK3, kK2, kQwen3, kQwen35}) {
    for (const char* text :
         {"<", "\n", "<|open|>", "<|close|>t", "</think>", "<think>", "<tool_call>\"",
          "<tool_call>\"</tool_call>", "<tool_call>{", "</think><tool_call>[<",
          "<|tool_calls_section_begin|>", "<|tool_call_begin|>"}) {
      read(setup, repeated(text));
    }
  }
  read(kK3, kTools + "<|open|>call " + repeated(" a=\""));
  read(kK3,
       kCall +
           repeated("<|open|>argument key=\"k\" type=\"object\"<|sep|>{<|close|>argument<|sep|>"));
  read(kQwen35, "<tool_call><function=f>\n" + repeated("<parameter=k>\n"));
  std::string keys = "<tool_call><function=f>\n";
  for (int i = 0; i < 20'000; ++i) keys += fmt::format("<parameter={}>1</parameter>", i);
  read(kQwen35, keys + "\n</function></tool_call>");
}

TEST(TokenChannels, TextThatOnlySpellsAMarkerIsText) {
  const auto tokenizer = byte_tokenizer({kKimiK3Markers.begin(), kKimiK3Markers.end()});
  TokenChannels channels = TokenChannels::create(*tokenizer, kK3).value();
  WholeOutput whole;
  const auto feed = [&](const std::string& text, SpecialTokens mode) {
    const auto ids = tokenizer->encode(text, mode).value();
    for (const TokenId id : ids) {
      whole.add(channels.push(id).value());
    }
  };
  feed("a <|close|>think<|sep|> ", SpecialTokens::AsText);
  feed("b<|close|>think<|sep|>", SpecialTokens::Parse);
  whole.add(channels.finish(OutputEnd::EndOfTurn));
  EXPECT_EQ(whole.line(), "a <|close|>think<|sep|> b||");
}

TEST(TokenChannels, MarkersThatAreNoTokensAreFoundByTheirSpelling) {
  const auto tokenizer = byte_tokenizer({"<|im_end|>"});
  TokenChannels channels = TokenChannels::create(*tokenizer, kK2).value();
  WholeOutput whole;
  const auto ids = tokenizer->encode("<think>r</think>a<|im_end|>b", SpecialTokens::Parse).value();
  for (const TokenId id : ids) whole.add(channels.push(id).value());
  EXPECT_EQ(whole.line(), "r|a|");
}

TEST(TokenChannels, NoHalfCodePointIsEverShown) {
  const auto tokenizer = byte_tokenizer({kQwenMarkers.begin(), kQwenMarkers.end()});
  TokenChannels channels = TokenChannels::create(*tokenizer, kQwen3).value();
  EXPECT_TRUE(channels.push(0xC3).value().empty());
  EXPECT_EQ(channels.push(0xA9).value(),
            (std::vector{ChannelEvent{Channel::Reasoning, "é", std::nullopt}}));
  EXPECT_TRUE(channels.push(0xC3).value().empty());
  // A marker behind half a code point.
  const TokenId end = tokenizer->encode("</think>", SpecialTokens::Parse).value()[0];
  EXPECT_EQ(channels.push(end).value(),
            (std::vector{ChannelEvent{Channel::Reasoning, "\uFFFD", std::nullopt}}));
  EXPECT_TRUE(channels.push(0xC3).value().empty());
  EXPECT_TRUE(channels.finish(OutputEnd::CutOff).empty());
}

TEST(TokenChannels, AnIdOutsideTheVocabularyIsAnError) {
  const auto tokenizer = byte_tokenizer({});
  TokenChannels channels = TokenChannels::create(*tokenizer, kQwen3).value();
  EXPECT_FALSE(channels.push(100'000));
}

}  // namespace
}  // namespace deltafin::text
