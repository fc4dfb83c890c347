#include "text/chat/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat/chat_template.h"

namespace deltafin::text {
namespace {

using testing::StartsWith;

JsonValue python_json(std::string_view text) {
  return parse_json(text, JsonDialect::Python).value();
}

// What is wrong with these messages, for a template.
std::string problem(std::string_view messages, const char* chat_template = "kimi-k3",
                    std::string_view tools = "null", const ChatOptions& options = {}) {
  const Result<Conversation> conversation =
      parse_conversation(python_json(messages), python_json(tools));
  if (!conversation) return conversation.error().what;
  const auto segments = find_template(chat_template)->render(*conversation, options);
  return segments ? "none" : segments.error().what;
}

TEST(Conversation, MalformedMessagesAreNamedWithMessageAndField) {
  EXPECT_EQ(problem("{}"), "messages: expected an array, found an object");
  EXPECT_EQ(problem("[1]"), "messages[0]: expected an object, found a number");
  EXPECT_EQ(problem(R"([{"role": "user"}, {"content": "x"}])"),
            "messages[1].role: expected system, user, assistant or tool, found none");
  EXPECT_EQ(problem(R"([{"role": ["user"]}])"),
            "messages[0].role: expected a string, found an array");
  EXPECT_EQ(problem(R"([{"role": "user", "content": 3}])"),
            "messages[0].content: expected a string or an array of parts, found a number");
  EXPECT_EQ(problem(R"([{"role": "user", "content": ["x"]}])"),
            "messages[0].content[0]: expected an object, found a string");
  EXPECT_EQ(problem(R"([{"role": "user", "content": [{"type": "text"}]}])"),
            "messages[0].content[0]: expected a part with text, an image or a video");
  EXPECT_EQ(problem(R"([{"role": "user", "content": [{"text": 1}]}])"),
            "messages[0].content[0].text: expected a string, found a number");
  EXPECT_EQ(problem(R"([{"role": "user", "name": {}}])"),
            "messages[0].name: expected a string, found an object");
  EXPECT_EQ(problem(R"([{"role": "assistant", "reasoning_content": true}])"),
            "messages[0].reasoning_content: expected a string, found a boolean");
}

TEST(Conversation, MalformedCallsAreNamedWithMessageCallAndField) {
  const auto call = [](const std::string& text) {
    return problem(R"([{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [)" +
                   text + "]}]");
  };
  const std::string path = "messages[1].tool_calls[0]";
  EXPECT_EQ(call("3"), path + ": expected an object, found a number");
  EXPECT_EQ(call(R"({"function": "f"})"), path + ".function: expected an object, found a string");
  EXPECT_EQ(call(R"({"function": {}})"),
            path + ".function.name: expected the name of a function, found none");
  EXPECT_EQ(call(R"({"name": ""})"), path + ".name: expected the name of a function, found none");
  EXPECT_EQ(call(R"({"function": {"name": "f", "arguments": [1]}})"),
            path + ".function.arguments: expected an object or a string, found an array");
  EXPECT_EQ(call(R"({"function": {"name": "f", "arguments": "[1]"}})"),
            path + ".function.arguments: expected an object, found an array");
  EXPECT_EQ(call(R"({"id": 7, "function": {"name": "f"}})"),
            path + ".id: expected a string, found a number");
  EXPECT_EQ(problem(R"([{"role": "user", "tool_calls": [{"name": "f"}]}])"),
            "messages[0].tool_calls: only a message of the assistant can have calls");
  EXPECT_EQ(problem(R"([{"role": "assistant", "tool_calls": {}}])"),
            "messages[0].tool_calls: expected an array, found an object");
}

TEST(Conversation, WhatOnlyOneTemplateCannotWriteIsNamedToo) {
  const std::string no_arguments =
      R"([{"role": "user", "content": "x"},
          {"role": "assistant", "tool_calls": [{"name": "f", "arguments": {}}, {"name": "g"}]}])";
  EXPECT_EQ(problem(no_arguments), "none");
  EXPECT_EQ(problem(no_arguments, "qwen3.5"), "none");
  for (const char* name : {"kimi-k2", "kimi-k2-thinking", "qwen3"}) {
    EXPECT_EQ(problem(no_arguments, name), "messages[1].tool_calls[1].function.arguments: missing");
  }
  EXPECT_THAT(problem(R"([{"role": "user", "content": "x"},
          {"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{oops"}]}])",
                      "qwen3.5"),
              StartsWith("messages[1].tool_calls[0].function.arguments: not valid JSON"));
  EXPECT_EQ(problem(R"([{"role": "user", "content": "a"}, {"role": "system", "content": "b"}])",
                    "qwen3.5"),
            "messages[1].role: a system message must be the first");
  EXPECT_EQ(problem(R"([{"role": "tool", "content": "a"}])"),
            "messages[0].name: expected the tool of this result, for it answers no call");
  EXPECT_EQ(problem("[]", "qwen3"), "messages: expected at least one");
}

TEST(Conversation, ToolsMustBeObjects) {
  EXPECT_EQ(problem("[]", "kimi-k3", "{}"), "tools: expected an array, found an object");
  EXPECT_EQ(problem("[]", "kimi-k3", "[{}, 1]"), "tools[1]: expected an object, found a number");
  EXPECT_EQ(problem(R"([{"role": "system", "tools": 1}])"),
            "messages[0].tools: expected an array, found a number");
}

TEST(Conversation, K3KnowsThreeEffortsAndNeedsASchema) {
  ChatOptions options;
  options.effort = "medium";
  EXPECT_EQ(problem("[]", "kimi-k3", "null", options),
            "effort: expected low, high or max, found \"medium\"");
  options.thinking = false;
  EXPECT_EQ(problem("[]", "kimi-k3", "null", options), "none");
  options.response_format = python_json(R"({"type": "json_schema"})");
  EXPECT_EQ(problem("[]", "kimi-k3", "null", options),
            "response_format.json_schema.schema: expected a schema");
}

TEST(Conversation, K3NeedsAsManyImagePromptsAsImages) {
  const char* two = R"([{"role": "user", "content": [{"type": "image"}, {"type": "image_url"}]}])";
  ChatOptions options;
  EXPECT_EQ(problem(two), "none");
  options.image_prompts = {"a"};
  EXPECT_EQ(problem(two, "kimi-k3", "null", options), "messages: 1 image prompts for more images");
  options.image_prompts = {"a", "b", "c"};
  EXPECT_EQ(problem(two, "kimi-k3", "null", options), "messages: 3 image prompts for 2 images");
}

TEST(Conversation, MediaAreSeen) {
  const auto has_media = [](std::string_view messages) {
    return parse_conversation(python_json(messages), JsonValue()).value().has_media();
  };
  EXPECT_FALSE(has_media(R"([{"role": "user", "content": [{"type": "text", "text": "x"}]}])"));
  EXPECT_TRUE(has_media(R"([{"role": "user"}, {"role": "user", "content": [{"video": "x"}]}])"));
}

}  // namespace
}  // namespace deltafin::text
