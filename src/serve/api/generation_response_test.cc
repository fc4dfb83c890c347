#include "serve/api/generation_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace deltafin::serve {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

const std::string kGreedy =
    R"("deltafin":{"mode":"greedy","temperature":0.0,"repetition_penalty":1.0,)"
    R"("presence_penalty":0.0,"frequency_penalty":0.0}})";

ResponseHead head(const char* id = "cmpl-1") {
  return {.id = id, .created = 1700000000, .model = "tiny", .sampling = {}};
}

constexpr Usage kUsage = {
    .prompt_tokens = 7, .cached_tokens = 4, .completion_tokens = 3, .reasoning_tokens = 2};
const std::string kUsageJson =
    R"("usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,)"
    R"("prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":)"
    R"({"reasoning_tokens":2}})";

// An echoed prompt of one token, a token, and half a code point that came as no text yet.
std::vector<TokenLogprob> three_tokens() {
  return {{.bytes = "The", .has_logprob = false},
          {.bytes = " end",
           .logprob = -0.25f,
           .top = {{" end", -0.25f}, {" cat", -1.5f}},
           .text_offset = 3},
          {.bytes = " \xe2\x82", .logprob = -2.1f, .top = {{"\n", -0.5f}}, .text_offset = 7}};
}

TEST(CompletionResponse, IsOpenAIsTextCompletion) {
  const CompletionChoice choices[] = {{.text = " Paris", .finish = FinishReason::Stop},
                                      {.text = " Rome", .finish = FinishReason::Length}};
  EXPECT_EQ(completion_json(head(), choices, false, kUsage),
            R"({"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"tiny",)"
            R"("choices":[{"text":" Paris","index":0,"logprobs":null,"finish_reason":"stop"},)"
            R"({"text":" Rome","index":1,"logprobs":null,"finish_reason":"length"}],)" +
                kUsageJson + "," + kGreedy);
}

TEST(CompletionResponse, HasNoLogprobForTheFirstTokenOfAPrompt) {
  const CompletionChoice choice = {
      .text = "The end", .logprobs = three_tokens(), .finish = FinishReason::Length};
  const Json json = Json::parse(completion_json(head(), {&choice, 1}, true, kUsage));
  EXPECT_EQ(json["choices"][0]["logprobs"].dump(),
            R"({"tokens":["The"," end","bytes: \\xe2\\x82"],)"
            R"("token_logprobs":[null,-0.25,-2.1],)"
            R"("top_logprobs":[null,{" end":-0.25," cat":-1.5},)"
            R"({"\n":-0.5,"bytes: \\xe2\\x82":-2.1}],)"
            R"("text_offset":[0,3,7]})");
}

TEST(CompletionResponse, ReportsAnAlternativeOnceAndFinitely) {
  const CompletionChoice choice = {.logprobs = {{.bytes = "a",
                                                 .logprob = -std::numeric_limits<float>::infinity(),
                                                 .top = {{"b", -0.5f}, {"b", -0.75f}}}}};
  const Json json = Json::parse(completion_json(head(), {&choice, 1}, true, kUsage));
  EXPECT_EQ(json["choices"][0]["logprobs"]["top_logprobs"].dump(), R"([{"b":-0.5,"a":-9999.0}])");
  EXPECT_EQ(json["choices"][0]["logprobs"]["token_logprobs"].dump(), "[-9999.0]");
}

TEST(CompletionResponse, WritesLogprobsThatReadBackAsTheSameFloats) {
  for (float logprob = -1e-7f; logprob > -100; logprob *= 1.37f) {
    const CompletionChoice choice = {.logprobs = {{.bytes = "a", .logprob = logprob}}};
    const Json json = Json::parse(completion_json(head(), {&choice, 1}, true, kUsage));
    EXPECT_EQ(json["choices"][0]["logprobs"]["token_logprobs"][0].get<float>(), logprob);
  }
}

TEST(CompletionResponse, OfNothingHasEmptyListsOfLogprobs) {
  const CompletionChoice choice = {.finish = FinishReason::Stop};
  EXPECT_THAT(completion_json(head(), {&choice, 1}, true, kUsage),
              HasSubstr(R"("logprobs":{"tokens":[],"token_logprobs":[],"top_logprobs":[],)"
                        R"("text_offset":[]})"));
}

TEST(ChatResponse, IsOpenAIsChatCompletion) {
  const ChatChoice choice = {.content = "4", .reasoning = "2+2", .finish = FinishReason::Stop};
  EXPECT_EQ(chat_json(head("chatcmpl-1"), {&choice, 1}, false, kUsage),
            R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,)"
            R"("model":"tiny","choices":[{"index":0,"message":{"role":"assistant",)"
            R"("content":"4","refusal":null,"reasoning_content":"2+2"},"logprobs":null,)"
            R"("finish_reason":"stop"}],)" +
                kUsageJson + "," + kGreedy);
}

TEST(ChatResponse, HasCallsOfTools) {
  const ChatChoice choice = {.calls = {{.id = "call_1", .name = "add", .arguments = R"({"a":2})"},
                                       {.id = "call_2",
                                        .name = "sub",
                                        .arguments = R"({"raw":"{"})",
                                        .error = "not valid JSON: it ends too early"}},
                             .finish = FinishReason::ToolCalls};
  const Json json = Json::parse(chat_json(head(), {&choice, 1}, false, kUsage));
  EXPECT_EQ(json["choices"][0].dump(),
            R"({"index":0,"message":{"role":"assistant","content":null,"refusal":null,)"
            R"("tool_calls":[{"id":"call_1","type":"function","function":{"name":"add",)"
            R"("arguments":"{\"a\":2}"}},{"id":"call_2","type":"function","function":)"
            R"({"name":"sub","arguments":"{\"raw\":\"{\"}"},)"
            R"("error":"not valid JSON: it ends too early"}]},"logprobs":null,)"
            R"("finish_reason":"tool_calls"})");
}

TEST(ChatResponse, OfNothingHasAnEmptyContent) {
  const ChatChoice choice = {.finish = FinishReason::Length};
  EXPECT_THAT(chat_json(head(), {&choice, 1}, false, kUsage),
              HasSubstr(R"("message":{"role":"assistant","content":"","refusal":null})"));
}

TEST(ChatResponse, HasLogprobsWithTheBytesOfTokens) {
  const ChatChoice choice = {.content = "x",
                             .logprobs = {{.bytes = "x", .logprob = -0.5f, .top = {{"x", -0.5f}}},
                                          {.bytes = "\xe2\x82", .logprob = -1, .top = {}}}};
  const Json json = Json::parse(chat_json(head(), {&choice, 1}, true, kUsage));
  EXPECT_EQ(json["choices"][0]["logprobs"].dump(),
            R"({"content":[{"token":"x","logprob":-0.5,"bytes":[120],"top_logprobs":)"
            R"([{"token":"x","logprob":-0.5,"bytes":[120]}]},)"
            R"({"token":"\\xe2\\x82","logprob":-1.0,"bytes":[226,130],"top_logprobs":[]}],)"
            R"("refusal":null})");
}

TEST(Response, SaysHowItWasSampled) {
  ResponseHead sampled = head();
  sampled.sampling = {.temperature = 0.6f,
                      .top_k = 20,
                      .top_p = 0.95f,
                      .min_p = 0.05f,
                      .repetition_penalty = 1.1f,
                      .presence_penalty = -0.2f,
                      .logit_bias = {{1, 2}},
                      .seed = 42};
  const Json json = Json::parse(completion_json(sampled, {}, false, kUsage));
  EXPECT_EQ(json["deltafin"].dump(),
            R"({"mode":"sample","temperature":0.6,"top_k":20,"top_p":0.95,)"
            R"("min_p":0.05,"seed":42,"repetition_penalty":1.1,"presence_penalty":-0.2,)"
            R"("frequency_penalty":0.0})");
}

TEST(Response, IsValidJsonWhateverTheTextIs) {
  const ChatChoice choice = {.content = "\xff\xfe"};
  EXPECT_TRUE(Json::accept(chat_json(head("\xff"), {&choice, 1}, false, kUsage)));
}

// The JSON of one event.
std::string data(const std::string& event) {
  EXPECT_THAT(event, StartsWith("data: {"));
  EXPECT_TRUE(event.ends_with("}\n\n"));
  EXPECT_EQ(event.find('\n'), event.size() - 2);
  return event.substr(6, event.size() - 8);
}

TEST(CompletionStream, HasPiecesAndThenTheEnd) {
  EXPECT_EQ(data(completion_event(head(), 1, {.text = " Pa"}, false, false)),
            R"({"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"tiny",)"
            R"("choices":[{"text":" Pa","index":1,"logprobs":null,"finish_reason":null}],)" +
                kGreedy);
  const Json end =
      Json::parse(data(completion_event(head(), 0, {.finish = FinishReason::Length}, true, true)));
  EXPECT_EQ(end["choices"].dump(),
            R"([{"text":"","index":0,"logprobs":null,"finish_reason":"length"}])");
  EXPECT_TRUE(end.at("usage").is_null());
  const Json piece = Json::parse(
      data(completion_event(head(), 0, {.text = "x", .logprobs = three_tokens()}, true, false)));
  EXPECT_EQ(piece["choices"][0]["logprobs"]["token_logprobs"].dump(), "[null,-0.25,-2.1]");
  EXPECT_FALSE(piece.contains("usage"));
}

std::string choice_of(const std::string& event) {
  const Json json = Json::parse(data(event));
  EXPECT_EQ(json["object"], "chat.completion.chunk");
  return json["choices"][0].dump();
}

TEST(ChatStream, BeginsWithTheRole) {
  EXPECT_EQ(data(chat_event(head("chatcmpl-1"), 0, {}, true, 0, false, false)),
            R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,)"
            R"("model":"tiny","choices":[{"index":0,"delta":{"role":"assistant","content":"",)"
            R"("refusal":null},"logprobs":null,"finish_reason":null}],)" +
                kGreedy);
}

TEST(ChatStream, HasDeltasOfReasoningContentAndCalls) {
  EXPECT_EQ(choice_of(chat_event(head(), 0, {.reasoning = "hm"}, false, 0, false, false)),
            R"({"index":0,"delta":{"reasoning_content":"hm"},"logprobs":null,)"
            R"("finish_reason":null})");
  EXPECT_EQ(choice_of(chat_event(head(), 1, {.content = "hi"}, false, 0, false, false)),
            R"({"index":1,"delta":{"content":"hi"},"logprobs":null,"finish_reason":null})");
  // The third and the fourth call of this answer.
  const ChatChoice calls = {.calls = {{.id = "c", .name = "f", .arguments = "{}"},
                                      {.id = "d", .name = "g", .arguments = "{}"}}};
  EXPECT_EQ(choice_of(chat_event(head(), 0, calls, false, 2, false, false)),
            R"({"index":0,"delta":{"tool_calls":[{"index":2,"id":"c","type":"function",)"
            R"("function":{"name":"f","arguments":"{}"}},{"index":3,"id":"d","type":"function",)"
            R"("function":{"name":"g","arguments":"{}"}}]},"logprobs":null,)"
            R"("finish_reason":null})");
}

TEST(ChatStream, EndsWithTheReasonAndUsage) {
  EXPECT_EQ(choice_of(chat_event(head(), 0, {.finish = FinishReason::Stop}, false, 0, true, true)),
            R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"})");
  EXPECT_EQ(data(usage_event(head("chatcmpl-1"), true, kUsage)),
            R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,)"
            R"("model":"tiny","choices":[],)" +
                kUsageJson + "," + kGreedy);
  EXPECT_THAT(usage_event(head(), false, kUsage), HasSubstr(R"("object":"text_completion")"));
}

TEST(Stream, SaysWhatWentWrong) {
  const ApiError error = {
      .status = 500, .message = "disk\nfull", .type = "server_error", .param = "", .code = ""};
  EXPECT_EQ(error_event(error),
            "data: {\"error\":{\"message\":\"disk\\nfull\",\"type\":\"server_error\","
            "\"param\":null,\"code\":null}}\n\n");
}

TEST(Stream, KeepsACommentOnOneLine) {
  EXPECT_EQ(comment_event("prefill 512/2048 eta 40s"), ": prefill 512/2048 eta 40s\n\n");
  EXPECT_EQ(comment_event("a\ndata: x\r\n\n"), ": a data: x   \n\n");
}

}  // namespace
}  // namespace deltafin::serve
