#include "serve/api/generation_response.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "serve/api/json_text.h"
#include "serve/api/sampling_json.h"
#include "serve/api/token_text.h"

namespace deltafin::serve {

using Json = nlohmann::ordered_json;

namespace {

std::string event(const Json& json) { return "data: " + json_text(json) + "\n\n"; }

// JSON has no infinity; OpenAI's API says -9999 for what cannot be.
double logprob_json(float logprob) {
  return std::isfinite(logprob) ? shortest_decimal(logprob) : -9999.0;
}

Json finish_json(const std::optional<FinishReason>& finish) {
  if (!finish) return nullptr;
  switch (*finish) {
    case FinishReason::Stop:
      return "stop";
    case FinishReason::Length:
      return "length";
    case FinishReason::ToolCalls:
      return "tool_calls";
  }
  return nullptr;
}

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

Json object_json(const ResponseHead& head, const char* object, Json choices) {
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"choices", std::move(choices)}};
}

// Usage stands behind the choices, and ours behind that.
std::string finished(Json object, const ResponseHead& head, const Usage& usage) {
  object["usage"] = usage_json(usage);
  object["deltafin"] = sampling_json(head.sampling);
  return json_text(object);
}

std::string chunk(Json object, const ResponseHead& head, bool usage_is_null) {
  if (usage_is_null) object["usage"] = nullptr;
  object["deltafin"] = sampling_json(head.sampling);
  return event(object);
}

// The alternatives and the token itself. Of tokens with the same text the most probable counts.
Json top_of_completion(const TokenLogprob& token) {
  Json top = Json::object();
  for (const TokenLogprob::Alternative& other : token.top) {
    std::string text = completion_token(other.bytes);
    if (!top.contains(text)) top[std::move(text)] = logprob_json(other.logprob);
  }
  std::string text = completion_token(token.bytes);
  if (!top.contains(text)) top[std::move(text)] = logprob_json(token.logprob);
  return top;
}

Json completion_logprobs(const std::vector<TokenLogprob>& tokens) {
  Json texts = Json::array(), logprobs = Json::array(), tops = Json::array(),
       offsets = Json::array();
  for (const TokenLogprob& token : tokens) {
    texts.push_back(completion_token(token.bytes));
    // Nothing says how probable the first token of a prompt is.
    logprobs.push_back(token.has_logprob ? Json(logprob_json(token.logprob)) : Json());
    tops.push_back(token.has_logprob ? top_of_completion(token) : Json());
    offsets.push_back(token.text_offset);
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

Json completion_choice(uint32_t index, const CompletionChoice& choice, bool with_logprobs) {
  return {{"text", choice.text},
          {"index", index},
          {"logprobs", with_logprobs ? completion_logprobs(choice.logprobs) : Json()},
          {"finish_reason", finish_json(choice.finish)}};
}

Json chat_token_json(const std::string& bytes, float logprob) {
  Json numbers = Json::array();
  for (const char c : bytes) numbers.push_back(static_cast<unsigned char>(c));
  return {{"token", chat_token(bytes)},
          {"logprob", logprob_json(logprob)},
          {"bytes", std::move(numbers)}};
}

Json chat_logprobs(const std::vector<TokenLogprob>& tokens) {
  Json content = Json::array();
  for (const TokenLogprob& token : tokens) {
    Json top = Json::array();
    for (const TokenLogprob::Alternative& other : token.top)
      top.push_back(chat_token_json(other.bytes, other.logprob));
    Json json = chat_token_json(token.bytes, token.logprob);
    json["top_logprobs"] = std::move(top);
    content.push_back(std::move(json));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json call_json(const ToolCallOutput& call) {
  Json json = {{"id", call.id},
               {"type", "function"},
               {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
  if (!call.error.empty()) json["error"] = call.error;
  return json;
}

Json message_json(const ChatChoice& choice) {
  Json message = {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}};
  if (choice.content.empty() && !choice.calls.empty()) message["content"] = nullptr;
  if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
  for (const ToolCallOutput& call : choice.calls) message["tool_calls"].push_back(call_json(call));
  return message;
}

Json delta_json(const ChatChoice& piece, uint32_t calls_before) {
  Json delta = Json::object();
  if (!piece.reasoning.empty()) delta["reasoning_content"] = piece.reasoning;
  if (!piece.content.empty()) delta["content"] = piece.content;
  for (const ToolCallOutput& call : piece.calls) {
    Json json = {{"index", calls_before++}};
    json.update(call_json(call));
    delta["tool_calls"].push_back(std::move(json));
  }
  return delta;
}

Json chat_choice(uint32_t index, const char* part, Json message, const ChatChoice& choice,
                 bool with_logprobs) {
  return {{"index", index},
          {part, std::move(message)},
          {"logprobs", with_logprobs ? chat_logprobs(choice.logprobs) : Json()},
          {"finish_reason", finish_json(choice.finish)}};
}

constexpr const char* kCompletion = "text_completion";
constexpr const char* kChatChunk = "chat.completion.chunk";

}  // namespace

std::string completion_json(const ResponseHead& head, std::span<const CompletionChoice> choices,
                            bool with_logprobs, const Usage& usage) {
  Json array = Json::array();
  for (size_t i = 0; i < choices.size(); ++i)
    array.push_back(completion_choice(static_cast<uint32_t>(i), choices[i], with_logprobs));
  return finished(object_json(head, kCompletion, std::move(array)), head, usage);
}

std::string chat_json(const ResponseHead& head, std::span<const ChatChoice> choices,
                      bool with_logprobs, const Usage& usage) {
  Json array = Json::array();
  for (size_t i = 0; i < choices.size(); ++i)
    array.push_back(chat_choice(static_cast<uint32_t>(i), "message", message_json(choices[i]),
                                choices[i], with_logprobs));
  return finished(object_json(head, "chat.completion", std::move(array)), head, usage);
}

std::string completion_event(const ResponseHead& head, uint32_t index,
                             const CompletionChoice& piece, bool with_logprobs,
                             bool usage_is_null) {
  // The piece that only ends has no tokens.
  const bool has_logprobs = with_logprobs && !piece.logprobs.empty();
  Json choices = Json::array({completion_choice(index, piece, has_logprobs)});
  return chunk(object_json(head, kCompletion, std::move(choices)), head, usage_is_null);
}

std::string chat_event(const ResponseHead& head, uint32_t index, const ChatChoice& piece,
                       bool first, uint32_t calls_before, bool with_logprobs, bool usage_is_null) {
  const bool has_logprobs = with_logprobs && !piece.logprobs.empty();
  Json delta = first ? Json({{"role", "assistant"}, {"content", ""}, {"refusal", nullptr}})
                     : delta_json(piece, calls_before);
  Json choices =
      Json::array({chat_choice(index, "delta", std::move(delta), piece, has_logprobs && !first)});
  return chunk(object_json(head, kChatChunk, std::move(choices)), head, usage_is_null);
}

std::string usage_event(const ResponseHead& head, bool is_chat, const Usage& usage) {
  Json object = object_json(head, is_chat ? kChatChunk : kCompletion, Json::array());
  object["usage"] = usage_json(usage);
  object["deltafin"] = sampling_json(head.sampling);
  return event(object);
}

std::string error_event(const ApiError& error) { return "data: " + to_json(error) + "\n\n"; }

std::string comment_event(std::string_view text) {
  std::string line(text);
  // A line feed would end the comment, two the event.
  std::ranges::replace(line, '\n', ' ');
  std::ranges::replace(line, '\r', ' ');
  return ": " + line + "\n\n";
}

}  // namespace deltafin::serve
