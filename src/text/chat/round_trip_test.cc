// What a model wrote, read and rendered again as history, is what it wrote: so the next prompt
// begins with the same tokens, and the state of this turn serves for it.
#include <gtest/gtest.h>

#include "text/chat/channel_parser.h"
#include "text/chat/test_goldens.h"

namespace deltafin::text {
namespace {

struct Case {
  const char* file;
  const char* template_name;
  const char* name;
};

class RoundTrip : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Recorded, RoundTrip,
                         testing::Values(Case{"outputs-k3.json", "kimi-k3", "plain"},
                                         Case{"outputs-k3.json", "kimi-k3", "empty-think"},
                                         Case{"outputs-k3.json", "kimi-k3", "whitespace-kept"},
                                         Case{"outputs-k3.json", "kimi-k3", "call-with-text"},
                                         Case{"outputs-k3.json", "kimi-k3", "two-calls"},
                                         Case{"outputs-k3.json", "kimi-k3", "json-block-broken"},
                                         Case{"outputs-k3.json", "kimi-k3", "escaped-attributes"},
                                         Case{"outputs-k2.json", "kimi-k2", "whitespace-kept"},
                                         Case{"outputs-k2.json", "kimi-k2", "text-and-call"},
                                         Case{"outputs-k2.json", "kimi-k2", "two-calls"},
                                         Case{"outputs-k2.json", "kimi-k2-thinking",
                                              "think-then-call"},
                                         Case{"outputs-qwen3.json", "qwen3", "plain"},
                                         Case{"outputs-qwen3.json", "qwen3", "one-call"},
                                         Case{"outputs-qwen3.json", "qwen3", "text-and-call"},
                                         Case{"outputs-qwen3.json", "qwen3", "two-calls"},
                                         Case{"outputs-qwen35.json", "qwen3.5", "plain"},
                                         Case{"outputs-qwen35.json", "qwen3.5", "text-and-call"},
                                         Case{"outputs-qwen35.json", "qwen3.5", "two-calls"}),
                         [](const auto& test) {
                           std::string name =
                               std::string(test.param.template_name) + "_" + test.param.name;
                           for (char& c : name) {
                             if (c == '-' || c == '.') c = '_';
                           }
                           return name;
                         });

TEST_P(RoundTrip, TheNextPromptBeginsWithThisOneAndItsOutput) {
  const JsonValue outputs = read_chat_golden(GetParam().file);
  const ChatTemplate& chat_template = *find_template(GetParam().template_name);
  std::string output;
  for (const JsonValue& golden : *field(outputs, "cases").as_array()) {
    if (string_field(golden, "name") == GetParam().name) output = string_field(golden, "text");
  }
  ASSERT_FALSE(output.empty());
  Conversation conversation;
  conversation.tools = *field(field(outputs, "meta"), "tools").as_array();
  conversation.messages.emplace_back().content = "q";
  ChatOptions options;
  const std::string prompt = joined(chat_template.render(conversation, options).value());

  ChannelSetup setup{chat_template.channels, chat_template.start(options), conversation.tools};
  TextChannels channels(setup);
  Message answer;
  answer.role = Role::Assistant;
  std::string reasoning, text;
  for (const ChannelEvent& event : channels.push(output)) {
    if (!event.call) {
      (event.channel == Channel::Reasoning ? reasoning : text) += event.text;
      continue;
    }
    const auto& arguments = event.call->arguments;
    answer.tool_calls.push_back({event.call->id, event.call->name,
                                 JsonValue{arguments ? *arguments : arguments.error().raw}});
  }
  answer.reasoning_content = reasoning;
  answer.content = text;
  conversation.messages.push_back(answer);
  options.add_generation_prompt = false;
  std::string history = joined(chat_template.render(conversation, options).value());
  if (history.ends_with('\n')) history.pop_back();  // behind the end of a turn
  EXPECT_EQ(history, prompt + output);
}

}  // namespace
}  // namespace deltafin::text
