// The body of POST /v1/completions and /v1/chat/completions as what is to be done. Pure.
//
// docs/api.md has the three lists: fields that are honoured, that are accepted because nothing
// depends on them, and all others, which are refused with a 400 that names the field.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "base/token.h"
#include "engine/sampler.h"
#include "serve/api/api_error.h"
#include "text/chat/chat_options.h"
#include "text/chat/chat_template.h"
#include "text/chat/conversation.h"

namespace deltafin::serve {

// What parsing must know of the server.
struct ApiDefaults {
  std::string model_id;  // a request for another model is a 404
  // Of generation_config.json; request > these > greedy.
  engine::SamplingParameters sampling;
  uint64_t drawn_seed = 0;           // for requests without one
  uint64_t default_max_tokens = 16;  // of /v1/completions without max_tokens, as in OpenAI's API
  size_t vocab_size = limits::kVocabulary;  // ids must be below it
  // What a template would ignore (reasoning_effort, thinking, tool_choice "required") is refused;
  // null: one that ignores all of it.
  const text::ChatTemplate* chat_template = nullptr;
};

// One prompt of /v1/completions: text, or ids as they are.
using CompletionPrompt = std::variant<std::string, std::vector<TokenId>>;

// What both have.
struct GenerationFields {
  engine::SamplingParameters sampling;  // effective: they are echoed
  std::optional<uint64_t> max_tokens;   // empty (chat only): what the context leaves
  uint32_t answers = 1;                 // n: 1..8
  std::vector<std::string> stop;
  bool stream = false, include_usage = false;
  std::optional<uint32_t> logprobs;  // how many alternatives beside the chosen token; empty: none
  std::optional<std::chrono::milliseconds> timeout;  // "timeout", in seconds
};

struct CompletionRequest : GenerationFields {
  std::vector<CompletionPrompt> prompts;  // at least one
  bool echo = false;
};

struct ChatRequest : GenerationFields {
  // Without tools where tool_choice is "none" and the template cannot say so.
  text::Conversation conversation;
  text::ChatOptions options;
};

// `body` is JSON. Errors: 400, naming the field, what was found and what was expected; 404 for
// another model.
ApiResult<CompletionRequest> parse_completion_request(std::string_view body,
                                                      const ApiDefaults& defaults);
ApiResult<ChatRequest> parse_chat_request(std::string_view body, const ApiDefaults& defaults);

}  // namespace deltafin::serve
