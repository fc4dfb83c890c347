#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api/test_requests.h"

namespace deltafin::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kQuestion = R"("messages": [{"role": "user", "content": "hi"}])";
constexpr const char* kTools =
    R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}])";

// With one question, and these members.
ApiResult<ChatRequest> with(const std::string& members, const char* chat_template = "kimi-k3") {
  return parse_chat_request(
      fmt::format("{{{}{}{}}}", kQuestion, members.empty() ? "" : ", ", members),
      test_defaults(chat_template));
}
std::string wrong(const std::string& members, const char* chat_template = "kimi-k3") {
  return problem(with(members, chat_template));
}
ApiResult<ChatRequest> say(const std::string& messages) {
  return parse_chat_request("{\"messages\": " + messages + "}", test_defaults());
}
std::string wrong_messages(const std::string& messages) { return problem(say(messages)); }

TEST(ChatRequest, OfOneMessageLeavesTheRestToModelAndContext) {
  const ChatRequest request = with("").value();
  ASSERT_THAT(request.conversation.messages, SizeIs(1));
  EXPECT_EQ(text::text_of(request.conversation.messages[0].content), "hi");
  EXPECT_FALSE(request.max_tokens || request.logprobs || request.options.thinking ||
               request.options.effort);
  EXPECT_EQ(request.sampling.temperature, 0);
}

TEST(ChatRequest, NeedsMessages) {
  EXPECT_EQ(problem(parse_chat_request("{}", test_defaults())),
            "400 missing_required_parameter messages | messages: is missing; expected an array of "
            "messages");
  EXPECT_EQ(wrong_messages("[]"),
            "400 invalid_value messages | messages: is empty; expected at least one message");
  EXPECT_THAT(wrong_messages("\"hi\""), HasSubstr("messages: expected an array, found \"hi\""));
}

TEST(ChatRequest, NamesMessageAndFieldThatAreWrong) {
  EXPECT_EQ(wrong_messages("[3]"),
            "400 invalid_value messages[0] | messages[0]: expected an object, found a number");
  EXPECT_EQ(
      wrong_messages(R"([{"role": "user", "content": "a"}, {"role": "king", "content": ""}])"),
      "400 invalid_value messages[1].role | messages[1].role: expected system, user, "
      "assistant or tool, found \"king\"");
  EXPECT_EQ(wrong_messages(R"([{"role": "user"}])"),
            "400 missing_required_parameter messages[0].content | messages[0].content: expected a "
            "string or an array of parts, found none");
  EXPECT_THAT(wrong_messages(R"([{"role": "user", "content": 3}])"),
              HasSubstr("messages[0].content | messages[0].content: expected a string"));
  EXPECT_EQ(wrong_messages(R"([{"role": "user", "content": "a", "contents": "b"}])"),
            "400 unknown_parameter messages[0].contents | messages[0].contents: is no field that "
            "this server knows; did you mean content?");
  EXPECT_EQ(wrong_messages(R"([{"role": "assistant", "tool_calls": [{"type": "function", "id": "1",
                          "function": {"name": ""}}]}])"),
            "400 invalid_value messages[0].tool_calls[0].function.name | "
            "messages[0].tool_calls[0].function.name: expected the name of a function, found none");
}

TEST(ChatRequest, ReadsOnlyText) {
  const ChatRequest request = say(R"([{"role": "user", "content": [{"type": "text", "text": "a"},
                                           {"type": "text", "text": "b"}]}])")
                                  .value();
  EXPECT_EQ(text::text_of(request.conversation.messages[0].content), "ab");
  const auto part = [](const std::string& json) {
    return wrong_messages(R"([{"role": "user", "content": [{"type": "text", "text": "a"}, )" +
                          json + "]}]");
  };
  EXPECT_EQ(part(R"({"type": "image_url", "image_url": {"url": "data:"}})"),
            "400 unsupported_value messages[0].content[1] | messages[0].content[1]: expected a "
            "part of type \"text\", found \"image_url\"; this server reads only text");
  EXPECT_THAT(part(R"({"type": "input_audio", "input_audio": {}})"),
              HasSubstr("found \"input_audio\"; this server reads only text"));
  EXPECT_THAT(part(R"({"image": "data:"})"), HasSubstr("found no type"));
  EXPECT_THAT(part(R"({"type": "text"})"), HasSubstr("messages[0].content[1].text: "));
  // A part that calls itself text and brings an image along.
  EXPECT_THAT(part(R"({"type": "text", "text": "x", "image_url": {}})"),
              HasSubstr("messages[0].content[1]"));
  EXPECT_THAT(part("5"), HasSubstr("messages[0].content[1]: expected an object, found 5"));
}

TEST(ChatRequest, TakesADeveloperForTheSystem) {
  const ChatRequest request = say(R"([{"role": "developer", "content": "be brief"},
                                      {"role": "user", "content": "developer"}])")
                                  .value();
  EXPECT_EQ(request.conversation.messages[0].role, text::Role::System);
  EXPECT_EQ(text::text_of(request.conversation.messages[1].content), "developer");
}

TEST(ChatRequest, TakesBackAnswersAsTheyWereGiven) {
  const ChatRequest request = say(R"([{"role": "user", "content": "2+2?"},
              {"role": "assistant", "content": null, "refusal": null, "annotations": [],
               "audio": null, "function_call": null, "reasoning_content": "add",
               "tool_calls": [{"id": "call_0", "index": 0, "type": "function",
                               "function": {"name": "add", "arguments": "{\"a\": 2}"}}]},
              {"role": "tool", "tool_call_id": "call_0", "content": "4"}])")
                                  .value();
  const text::Message& answer = request.conversation.messages[1];
  EXPECT_EQ(answer.reasoning_content, "add");
  ASSERT_THAT(answer.tool_calls, SizeIs(1));
  EXPECT_EQ(answer.tool_calls[0].id, "call_0");
  EXPECT_EQ(answer.tool_calls[0].name, "add");
  EXPECT_EQ(request.conversation.messages[2].tool_call_id, "call_0");
  EXPECT_THAT(wrong_messages(R"([{"role": "assistant", "refusal": "no"}])"),
              HasSubstr("messages[0].refusal: is not supported; expected null, found \"no\""));
  EXPECT_THAT(wrong_messages(R"([{"role": "assistant", "function_call": {"name": "f"}}])"),
              HasSubstr("messages[0].function_call: is not supported"));
}

TEST(ChatRequest, TakesReasoningUnderItsOtherName) {
  const ChatRequest request = say(R"([{"role": "assistant", "content": "4", "reasoning": "2+2"},
              {"role": "assistant", "content": "5", "reasoning": "no", "reasoning_content": "yes"},
              {"role": "assistant", "content": "6"}])")
                                  .value();
  EXPECT_EQ(request.conversation.messages[0].reasoning_content, "2+2");
  EXPECT_EQ(request.conversation.messages[1].reasoning_content, "yes");
  EXPECT_EQ(request.conversation.messages[2].reasoning_content, std::nullopt);
}

TEST(ChatRequest, HasToolsInMessagesOnlyWhereTheTemplatePrintsThem) {
  const std::string body = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "system", "content": "b", "tools": [{"type": "function"}]}]})";
  EXPECT_TRUE(parse_chat_request(body, test_defaults("kimi-k3")).has_value());
  EXPECT_EQ(problem(parse_chat_request(body, test_defaults("qwen3"))),
            "400 unsupported_value messages[1].tools | messages[1].tools: the template qwen3 has "
            "only the tools of the whole request");
}

TEST(ChatRequest, ChecksTools) {
  EXPECT_THAT(with(kTools).value().conversation.tools, SizeIs(1));
  EXPECT_THAT(with(R"("tools": [])").value().conversation.tools, IsEmpty());
  EXPECT_EQ(wrong(R"("tools": [{"type": "custom"}])"),
            "400 invalid_value tools[0].type | tools[0].type: expected \"function\", found "
            "\"custom\"");
  EXPECT_THAT(wrong(R"("tools": [{"type": "function"}])"),
              HasSubstr("tools[0].function: expected"));
  EXPECT_THAT(wrong(R"("tools": [{"type": "function", "function": {}}])"),
              HasSubstr("tools[0].function.name: expected the name of a function, found none"));
  EXPECT_THAT(
      wrong(R"("tools": [{"type": "function", "function": {"name": "f", "parameters": []}}])"),
      HasSubstr("tools[0].function.parameters: expected an object, found an array"));
  EXPECT_THAT(wrong(R"("tools": [1])"), HasSubstr("tools[0]: expected an object"));
  EXPECT_THAT(wrong(R"("tools": {})"), HasSubstr("tools: expected an array"));
}

TEST(ChatRequest, CallsNoToolWhereNoneMayBeCalled) {
  const std::string none = std::string(kTools) + R"(, "tool_choice": "none")";
  // K3 is told both.
  ChatRequest request = with(none).value();
  EXPECT_EQ(request.options.tool_choice, "none");
  EXPECT_THAT(request.conversation.tools, SizeIs(1));
  // The others cannot be told that there are tools and none is to be called.
  request = with(none, "qwen3").value();
  EXPECT_EQ(request.options.tool_choice, "");
  EXPECT_THAT(request.conversation.tools, IsEmpty());
  request = with(std::string(kTools) + R"(, "tool_choice": "auto")", "qwen3").value();
  EXPECT_THAT(request.conversation.tools, SizeIs(1));
}

TEST(ChatRequest, MustCallAToolOnlyWhereTheTemplateCanSaySo) {
  const std::string required = std::string(kTools) + R"(, "tool_choice": "required")";
  EXPECT_EQ(with(required).value().options.tool_choice, "required");
  EXPECT_EQ(wrong(required, "qwen3"),
            "400 unsupported_value tool_choice | tool_choice: the template qwen3 cannot tell the "
            "model that it must call a tool; send \"auto\"");
  EXPECT_THAT(wrong(R"("tool_choice": "required")"), HasSubstr("there are no tools to call"));
  EXPECT_THAT(wrong(std::string(kTools) +
                    R"(, "tool_choice": {"type": "function", "function": {"name": "f"}})"),
              HasSubstr("400 unsupported_value tool_choice | tool_choice: the model cannot be made "
                        "to call one function"));
  EXPECT_THAT(wrong(R"("tool_choice": "any")"),
              HasSubstr("tool_choice: expected \"auto\" or \"none\", found \"any\""));
  EXPECT_THAT(wrong(R"("tool_choice": 1)"), HasSubstr("tool_choice: expected \"auto\""));
}

TEST(ChatRequest, SwitchesReasoningOnAndOffInEveryoneSWords) {
  for (const char* on :
       {R"("thinking": true)", R"("enable_thinking": true)", R"("thinking": {"type": "enabled"})",
        R"("chat_template_kwargs": {"thinking": true})",
        R"("chat_template_kwargs": {"enable_thinking": true})"})
    EXPECT_EQ(with(on).value().options.thinking, true) << on;
  for (const char* off : {R"("thinking": false)", R"("enable_thinking": false)",
                          R"("thinking": {"type": "disabled"})", R"("reasoning_effort": "none")",
                          R"("chat_template_kwargs": {"reasoning_effort": "none"})"})
    EXPECT_EQ(with(off).value().options.thinking, false) << off;
  EXPECT_EQ(wrong(R"("thinking": true, "chat_template_kwargs": {"enable_thinking": false})"),
            "400 invalid_value chat_template_kwargs.enable_thinking | "
            "chat_template_kwargs.enable_thinking: contradicts thinking");
  EXPECT_THAT(wrong(R"("thinking": true, "reasoning_effort": "none")"),
              HasSubstr("reasoning_effort: contradicts thinking"));
  EXPECT_THAT(wrong(R"("thinking": {"type": "enabled", "budget_tokens": 5})"),
              HasSubstr("unknown_parameter thinking.budget_tokens"));
  EXPECT_THAT(wrong(R"("thinking": {})"), HasSubstr("thinking.type: expected \"enabled\" or"));
  EXPECT_THAT(wrong(R"("thinking": "yes")"), HasSubstr("thinking: expected true, false or"));
  EXPECT_THAT(wrong(R"("chat_template_kwargs": {"documents": []})"),
              HasSubstr("unknown_parameter chat_template_kwargs.documents"));
  EXPECT_EQ(wrong(R"("thinking": true)", "kimi-k2-thinking"),
            "400 unsupported_value thinking | thinking: the template kimi-k2-thinking leaves that "
            "to the model");
}

TEST(ChatRequest, ReasonsAsMuchAsItSaysWhereTheTemplateCanSaySo) {
  for (const char* level : {"low", "high", "max"})
    EXPECT_EQ(with(fmt::format(R"("reasoning_effort": "{}")", level)).value().options.effort,
              level);
  EXPECT_EQ(wrong(R"("reasoning_effort": "medium")"),
            "400 invalid_value reasoning_effort | reasoning_effort: expected none, low, high or "
            "max, found \"medium\"");
  EXPECT_EQ(wrong(R"("reasoning_effort": "high")", "qwen3"),
            "400 unsupported_value reasoning_effort | reasoning_effort: the template qwen3 has no "
            "levels of effort");
  EXPECT_EQ(with(R"("reasoning_effort": "none")", "qwen3").value().options.thinking, false);
  EXPECT_THAT(
      wrong(R"("reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "max"})"),
      HasSubstr("chat_template_kwargs.reasoning_effort: contradicts reasoning_effort"));
}

TEST(ChatRequest, AnswersInTextAlone) {
  EXPECT_EQ(wrong(R"("response_format": {"type": "text"}, "modalities": ["text"])"), "none");
  EXPECT_EQ(wrong(R"("response_format": {"type": "json_object"})"),
            "400 unsupported_value response_format.type | response_format.type: expected \"text\", "
            "found \"json_object\"; output is not constrained");
  EXPECT_THAT(wrong(R"("modalities": ["text", "audio"])"),
              HasSubstr("unsupported_parameter modalities"));
}

TEST(ChatRequest, ReportsLogprobs) {
  EXPECT_EQ(with(R"("logprobs": true)").value().logprobs, 0);
  EXPECT_EQ(with(R"("logprobs": true, "top_logprobs": 20)").value().logprobs, 20);
  EXPECT_EQ(with(R"("logprobs": false)").value().logprobs, std::nullopt);
  EXPECT_EQ(wrong(R"("top_logprobs": 5)"),
            "400 invalid_value top_logprobs | top_logprobs: is only for \"logprobs\": true");
  EXPECT_THAT(wrong(R"("logprobs": 5)"), HasSubstr("logprobs: expected true or false, found 5"));
  EXPECT_THAT(wrong(R"("logprobs": true, "top_logprobs": 21)"), HasSubstr("from 0 to 20"));
}

TEST(ChatRequest, GeneratesAtLeastOneToken) {
  EXPECT_EQ(with(R"("max_completion_tokens": 7)").value().max_tokens, 7);
  EXPECT_THAT(wrong(R"("max_tokens": 0)"), HasSubstr("max_tokens: expected an integer from 1"));
}

TEST(ChatRequest, HasFieldsOfItsOwn) {
  EXPECT_EQ(wrong(R"("prompt": "x")"),
            "400 unknown_parameter prompt | prompt: is a field of /v1/completions");
  EXPECT_THAT(wrong(R"("message": "x")"), HasSubstr("did you mean messages?"));
  EXPECT_EQ(wrong(R"("parallel_tool_calls": false)"), "none");
  EXPECT_THAT(wrong(R"("functions": [])"), HasSubstr("functions: is not supported: the old form"));
}

TEST(ChatRequest, SharesItsFieldsWithCompletions) {
  const ChatRequest request =
      with(R"("n": 2, "stop": "x", "seed": 9, "temperature": 1, "stream": true, "timeout": 5)")
          .value();
  EXPECT_EQ(request.answers, 2);
  EXPECT_THAT(request.stop, ElementsAre("x"));
  EXPECT_EQ(request.sampling.seed, 9);
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(request.timeout, std::chrono::seconds(5));
}

}  // namespace
}  // namespace deltafin::serve
