// What comes out of a generation, as OpenAI's objects: whole answers and chunks of streams. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sampler.h"
#include "serve/api/api_error.h"
#include "text/chat/channels.h"

namespace deltafin::serve {

// A token and what else could have been. Bytes are the token's own: they need not be whole code
// points.
struct TokenLogprob {
  std::string bytes = {};
  float logprob = 0;
  struct Alternative {
    std::string bytes;
    float logprob = 0;
  };
  std::vector<Alternative> top = {};  // the most probable first
  size_t text_offset = 0;   // of /v1/completions: where the token's text begins, in characters
  bool has_logprob = true;  // false: the first token of an echoed prompt
};

enum class FinishReason : uint8_t { Stop, Length, ToolCalls };

struct Usage {
  uint64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0, reasoning_tokens = 0;
};

// What every object of one response begins with.
struct ResponseHead {
  std::string id;       // "cmpl-..." or "chatcmpl-..."
  int64_t created = 0;  // Unix seconds
  std::string model;
  engine::SamplingParameters sampling;  // effective, echoed under "deltafin"
};

struct CompletionChoice {
  std::string text = {};
  std::vector<TokenLogprob> logprobs = {};  // when they were asked for
  std::optional<FinishReason> finish = {};
};

struct ToolCallOutput {
  std::string id = {}, name = {}, arguments = {};  // arguments: the text of a JSON object
  // Why `arguments` is {"raw": what the model wrote}, which the client reads as "error" beside
  // "function"; empty: it is not.
  std::string error = {};
};

struct ChatChoice {
  std::string content = {}, reasoning = {};
  std::vector<ToolCallOutput> calls = {};
  std::vector<TokenLogprob> logprobs = {};
  std::optional<FinishReason> finish = {};
};

// Whole answers.
std::string completion_json(const ResponseHead& head, std::span<const CompletionChoice> choices,
                            bool with_logprobs, const Usage& usage);
std::string chat_json(const ResponseHead& head, std::span<const ChatChoice> choices,
                      bool with_logprobs, const Usage& usage);

// One event of a stream, "data: {...}\n\n": what is new of one choice. `usage_is_null`: the client
// asked for usage, which the last event has. In OpenAI's API the finish comes in a piece of its
// own.
std::string completion_event(const ResponseHead& head, uint32_t index,
                             const CompletionChoice& piece, bool with_logprobs, bool usage_is_null);
// `first`: with the role, without content.
std::string chat_event(const ResponseHead& head, uint32_t index, const ChatChoice& piece,
                       bool first, uint32_t calls_before, bool with_logprobs, bool usage_is_null);
std::string usage_event(const ResponseHead& head, bool is_chat, const Usage& usage);
std::string error_event(const ApiError& error);
inline constexpr const char* kDoneEvent = "data: [DONE]\n\n";
// ": prefill 512/2048 eta 40s\n\n": keeps the connection alive and says how far it is.
std::string comment_event(std::string_view text);

}  // namespace deltafin::serve
