// Recorded outputs (tests/golden/chat/outputs-*.json) through the channel parser, at every split.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "text/chat/channel_parser.h"
#include "text/chat/kimi_k2_channels.h"
#include "text/chat/kimi_k3_channels.h"
#include "text/chat/python_text.h"
#include "text/chat/qwen_channels.h"
#include "text/chat/test_channels.h"
#include "text/chat/test_goldens.h"

namespace deltafin::text {
namespace {

struct Family {
  const char* name;
  const char* file;
  ChannelFormat format;
  // Whose reading of the output is ours, where kDifferent has nothing else.
  const char* parser;
  size_t case_count;
};

constexpr Family kFamilies[] = {
    {"k3", "outputs-k3.json", ChannelFormat::KimiK3, "shard", 29},
    {"k2", "outputs-k2.json", ChannelFormat::KimiK2, "vllm", 27},
    {"qwen3", "outputs-qwen3.json", ChannelFormat::Qwen3, "vllm", 22},
    {"qwen35", "outputs-qwen35.json", ChannelFormat::Qwen35, "vllm", 26},
};

// Where we read something else, and why.
const std::map<std::string, std::string> kDifferent = {
    // Only one parser looks at ids.
    {"k3/spelled-marker-ordinary-tokens", "t|the marker <|sep|> is written so|"},
    // Arguments that are no JSON: an error, not a string that no client can read.
    {"k3/json-block-broken", "t||[ store!{\"s\": \"x\", !]"},
    {"k2/broken-json", "||[functions.store:0 store!{\"s\": \"x\", !]"},
    // Calls without a name that can be called: an error, not silence.
    {"k2/no-index", "||[functions.ping !{}!]"},
    {"k2/openai-style-id", "||[call_abc123 !{}!]"},
    // A call that was cut off is no call.
    {"k2/cut-in-args", "|a|"},
    {"k2/cut-in-id", "|a|"},
    {"qwen3/cut-in-args", "|a|"},
    {"qwen35/cut-in-value", "|a|"},
    // An object within a string is that object; no arguments are an empty object.
    {"qwen3/arguments-string", "||[ store({\"i\": 1})]"},
    {"qwen3/no-arguments", "||[ ping({})]"},
    // One broken call does not turn everything into an answer.
    {"qwen3/broken-json", "|x|[ !\n{\"name\": \"store\", \"arguments\": {\"i\": 1\n!]"},
    {"qwen3/second-broken", "||[ ping({})][ !\n{\"name\": oops\n!]"},
    // A marker within a string of JSON is text.
    {"qwen3/end-tag-in-string", "||[ store({\"s\": \"x</tool_call>y\"})]"},
    // Tags count where the template writes them: at the beginning of a line.
    {"qwen35/tags-in-value", "||[ store({\"code\": \"a <parameter=x> b </function> c\"})]"},
    // Qwen3's form, which cannot be mistaken.
    {"qwen35/json-inside", "||[ ping({})]"},
};

class ChannelGoldens : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override { file_ = read_chat_golden(GetParam().file); }

  const JsonValue::Array& cases() const { return *field(file_, "cases").as_array(); }

  ChannelSetup setup_of(const JsonValue& golden) const {
    ChannelSetup setup;
    setup.format = GetParam().format;
    setup.tools = *field(field(file_, "meta"), "tools").as_array();
    const bool thinks = string_field(golden, "starts_in") == "think" ||
                        (GetParam().format == ChannelFormat::Qwen3 &&
                         bool_field(golden, "enable_thinking").value_or(false)) ||
                        (GetParam().format == ChannelFormat::KimiK2 &&
                         string_field(golden, "name") == "think-open-in-prompt");
    setup.start = thinks ? ChannelStart::Reasoning : ChannelStart::Answer;
    return setup;
  }

  static std::string expected_of(const JsonValue& golden) {
    const auto different =
        kDifferent.find(std::string(GetParam().name) + "/" + string_field(golden, "name"));
    if (different != kDifferent.end()) return different->second;
    const JsonValue& parsed = field(field(golden, "parsed_by"), GetParam().parser);
    EXPECT_FALSE(parsed.is_null()) << string_field(golden, "name");
    WholeOutput whole;
    whole.reasoning = string_field(parsed, "reasoning");
    whole.answer = string_field(parsed, "content");
    for (const JsonValue& call : *field(parsed, "tool_calls").as_array()) {
      whole.add_call(string_field(call, "id"), string_field(call, "name"),
                     string_field(call, "arguments"));
    }
    // Line feeds around Qwen's markers are the template's.
    if (GetParam().format == ChannelFormat::Qwen3 || GetParam().format == ChannelFormat::Qwen35) {
      whole.reasoning = strip_newlines(whole.reasoning);
      whole.answer = strip_newlines_left(whole.answer);
      if (!whole.calls.empty()) whole.answer = strip_newlines_right(whole.answer);
    }
    return whole.line();
  }

  JsonValue file_;
};

INSTANTIATE_TEST_SUITE_P(Recorded, ChannelGoldens, testing::ValuesIn(kFamilies),
                         [](const auto& test) { return std::string(test.param.name); });

std::string read_in_pieces(const ChannelSetup& setup, const std::vector<std::string>& pieces) {
  TextChannels channels(setup);
  WholeOutput whole;
  for (const std::string& piece : pieces) whole.add(channels.push(piece));
  whole.add(channels.finish(OutputEnd::CutOff));
  return whole.line();
}

TEST_P(ChannelGoldens, EveryOutputIsReadAsTheOthersDo) {
  for (const JsonValue& golden : cases()) {
    EXPECT_EQ(read_in_pieces(setup_of(golden), {string_field(golden, "text")}), expected_of(golden))
        << string_field(golden, "name");
  }
  EXPECT_EQ(cases().size(), GetParam().case_count);
}

TEST_P(ChannelGoldens, TheResultIsTheSameAtEverySplit) {
  for (const JsonValue& golden : cases()) {
    const ChannelSetup setup = setup_of(golden);
    const std::string text = string_field(golden, "text");
    const std::string expected = read_in_pieces(setup, {text});
    const std::vector<std::string> points = code_points(text);
    EXPECT_EQ(read_in_pieces(setup, points), expected) << string_field(golden, "name");
    std::string begin;
    for (const std::string& point : points) {
      begin += point;
      EXPECT_EQ(read_in_pieces(setup, {begin, text.substr(begin.size())}), expected)
          << string_field(golden, "name") << " at " << begin.size();
    }
  }
}

// What has been shown is never taken back, and no part of a marker is ever among it.
TEST_P(ChannelGoldens, CutAnywhereTheResultIsABeginningOfTheWhole) {
  for (const JsonValue& golden : cases()) {
    const std::string text = string_field(golden, "text");
    const auto read = [&](const std::string& part) {
      TextChannels channels(setup_of(golden));
      WholeOutput whole;
      whole.add(channels.push(part));
      whole.add(channels.finish(OutputEnd::CutOff));
      return whole;
    };
    const WholeOutput whole = read(text);
    std::string part;
    for (const std::string& point : code_points(text)) {
      const WholeOutput cut = read(part);
      const std::string at = string_field(golden, "name") + " at " + std::to_string(part.size());
      EXPECT_TRUE(whole.reasoning.starts_with(strip_newlines_right(cut.reasoning))) << at;
      EXPECT_TRUE(whole.answer.starts_with(strip_newlines_right(cut.answer))) << at;
      EXPECT_TRUE(whole.calls.starts_with(cut.calls)) << at << cut.calls;
      part += point;
    }
  }
}

TEST_P(ChannelGoldens, TokensGiveWhatTextGives) {
  std::vector<std::string> names(kQwenMarkers.begin(), kQwenMarkers.end());
  if (GetParam().format == ChannelFormat::KimiK3) {
    names.assign(kKimiK3Markers.begin(), kKimiK3Markers.end());
  } else if (GetParam().format == ChannelFormat::KimiK2) {
    names.assign(kKimiK2Markers.begin(), kKimiK2Markers.end());
  }
  const std::unique_ptr<Tokenizer> tokenizer = byte_tokenizer(names);
  for (const JsonValue& golden : cases()) {
    TokenChannels channels = TokenChannels::create(*tokenizer, setup_of(golden)).value();
    WholeOutput whole;
    const auto ids = tokenizer->encode(string_field(golden, "text"), SpecialTokens::Parse).value();
    for (const TokenId id : ids) whole.add(channels.push(id).value());
    whole.add(channels.finish(OutputEnd::CutOff));
    EXPECT_EQ(whole.line(), expected_of(golden)) << string_field(golden, "name");
  }
}

}  // namespace
}  // namespace deltafin::text
