#include "serve/api/field_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/suggestions.h"
#include "serve/api/field_reader.h"

namespace deltafin::serve {

using text::JsonValue;

namespace {

using enum FieldPolicy;

constexpr bool kYes = true, kNo = false;

// In the order of docs/api.md, which a test compares. Columns: /v1/completions,
// /v1/chat/completions.
constexpr Field kFields[] = {
    {"model", kYes, kYes, Honoured},
    {"prompt", kYes, kNo, Honoured},
    {"messages", kNo, kYes, Honoured},
    {"max_tokens", kYes, kYes, Honoured},
    {"max_completion_tokens", kYes, kYes, Honoured},
    {"n", kYes, kYes, Honoured},
    {"best_of", kYes, kNo, Honoured},
    {"stop", kYes, kYes, Honoured},
    {"temperature", kYes, kYes, Honoured},
    {"top_p", kYes, kYes, Honoured},
    {"top_k", kYes, kYes, Honoured},
    {"min_p", kYes, kYes, Honoured},
    {"presence_penalty", kYes, kYes, Honoured},
    {"frequency_penalty", kYes, kYes, Honoured},
    {"repetition_penalty", kYes, kYes, Honoured},
    {"logit_bias", kYes, kYes, Honoured},
    {"seed", kYes, kYes, Honoured},
    {"echo", kYes, kNo, Honoured},
    {"logprobs", kYes, kYes, Honoured},
    {"top_logprobs", kNo, kYes, Honoured},
    {"stream", kYes, kYes, Honoured},
    {"stream_options", kYes, kYes, Honoured},
    {"timeout", kYes, kYes, Honoured},
    {"tools", kNo, kYes, Honoured},
    {"tool_choice", kNo, kYes, Honoured},
    {"reasoning_effort", kNo, kYes, Honoured},
    {"thinking", kNo, kYes, Honoured},
    {"enable_thinking", kNo, kYes, Honoured},
    {"chat_template_kwargs", kNo, kYes, Honoured},
    {"response_format", kNo, kYes, Honoured},

    {"user", kYes, kYes, Neutral, "string"},
    {"metadata", kYes, kYes, Neutral, "object"},
    {"store", kYes, kYes, Neutral, "false"},
    {"service_tier", kYes, kYes, Neutral, R"("auto", "default")"},
    {"parallel_tool_calls", kNo, kYes, Neutral, "boolean"},
    {"prompt_cache_key", kYes, kYes, Neutral, "string"},
    {"prompt_cache_retention", kYes, kYes, Neutral, "string"},
    {"cache_prompt", kYes, kYes, Neutral, "boolean"},
    {"safety_identifier", kYes, kYes, Neutral, "string"},

    {"suffix", kYes, kNo, Refused, R"("")", "text is generated only behind the prompt"},
    {"functions", kNo, kYes, Refused, "", "the old form of tools; send tools"},
    {"function_call", kNo, kYes, Refused, "", "the old form of tool_choice; send tool_choice"},
    {"modalities", kNo, kYes, Refused, R"(["text"])", "only text is generated"},
    {"audio", kNo, kYes, Refused, "", "only text is generated"},
    {"prediction", kNo, kYes, Refused, "", "predicted outputs are not supported"},
    {"web_search_options", kNo, kYes, Refused, "", "this server searches nothing"},
    {"verbosity", kNo, kYes, Refused, R"("medium")", "the chat templates have no word for it"},
    {"add_generation_prompt", kNo, kYes, Refused, "true", "the model always answers in a new turn"},
    {"continue_final_message", kNo, kYes, Refused, "false",
     "the model always answers in a new turn"},
    {"chat_template", kNo, kYes, Refused, "", "the server's template is fixed (--template)"},
    {"documents", kNo, kYes, Refused, "", "put documents into messages"},
    {"add_special_tokens", kYes, kYes, Refused, "false", "no token is ever added to a text"},
    {"stop_token_ids", kYes, kYes, Refused, "[]", "send stop, or logit_bias"},
    {"ignore_eos", kYes, kYes, Refused, "false", "an answer ends with the token that ends it"},
    {"min_tokens", kYes, kYes, Refused, "0", "an answer ends with the token that ends it"},
    {"include_stop_str_in_output", kYes, kYes, Refused, "false", "stop strings are never shown"},
    {"skip_special_tokens", kYes, kYes, Refused, "true", "control tokens are never shown"},
    {"prompt_logprobs", kYes, kYes, Refused, "", "send echo and logprobs to /v1/completions"},
    {"use_beam_search", kYes, kYes, Refused, "false", "answers are sampled"},
    {"length_penalty", kYes, kYes, Refused, "1, 1.0", "answers are sampled, without beam search"},
    {"bad_words", kYes, kYes, Refused, "[]", "send logit_bias"},
    {"allowed_token_ids", kYes, kYes, Refused, "", "send logit_bias"},
    {"guided_json", kYes, kYes, Refused, "", "output is not constrained"},
    {"guided_regex", kYes, kYes, Refused, "", "output is not constrained"},
    {"guided_choice", kYes, kYes, Refused, "", "output is not constrained"},
    {"guided_grammar", kYes, kYes, Refused, "", "output is not constrained"},
    {"structured_outputs", kYes, kYes, Refused, "", "output is not constrained"},
    {"grammar", kYes, kYes, Refused, R"("")", "output is not constrained"},
    {"json_schema", kYes, kYes, Refused, "", "output is not constrained"},
    {"typical_p", kYes, kYes, Refused, "1, 1.0", "not among the ways to choose a token"},
    {"mirostat", kYes, kYes, Refused, "0", "not among the ways to choose a token"},
    {"repeat_penalty", kYes, kYes, Refused, "1, 1.0", "send repetition_penalty"},
    {"n_predict", kYes, kYes, Refused, "", "send max_tokens"},
    {"max_new_tokens", kYes, kYes, Refused, "", "send max_tokens"},
};

bool belongs_to(const Field& field, Endpoint endpoint) {
  return endpoint == Endpoint::Chat ? field.chat : field.completions;
}

bool is_of(const JsonValue& value, std::string_view accepted) {
  if (accepted == "string") return value.as_string() != nullptr;
  if (accepted == "boolean") return value.as_bool() != nullptr;
  if (accepted == "object") return value.as_object() != nullptr;
  return text::dump_json(value, text::JsonSpacing::Compact, text::JsonKeys::AsGiven) == accepted;
}

bool accepts(const Field& field, const JsonValue& value) {
  std::string_view rest = field.accepts;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(", "), rest.size());
    if (is_of(value, rest.substr(0, comma))) return true;
    rest.remove_prefix(std::min(comma + 2, rest.size()));
  }
  return false;
}

const Field* find_field(std::string_view name, Endpoint endpoint) {
  const auto* found = std::find_if(std::begin(kFields), std::end(kFields), [&](const Field& field) {
    return field.name == name && belongs_to(field, endpoint);
  });
  return found == std::end(kFields) ? nullptr : found;
}

const char* path_of(Endpoint endpoint) {
  return endpoint == Endpoint::Chat ? "/v1/chat/completions" : "/v1/completions";
}

ApiError unknown_field(const std::string& name, Endpoint endpoint) {
  const Endpoint other = endpoint == Endpoint::Chat ? Endpoint::Completions : Endpoint::Chat;
  std::string advice;
  if (find_field(name, other) != nullptr) {
    advice = fmt::format("is a field of {}", path_of(other));
  } else {
    std::vector<std::string> honoured;
    for (const Field& field : kFields) {
      if (field.policy == Honoured && belongs_to(field, endpoint))
        honoured.emplace_back(field.name);
    }
    advice = suggestion(name, honoured);
  }
  return bad_field(shown_name(name), advice, "unknown_parameter");
}

std::optional<ApiError> check_field(const text::JsonMember& member, Endpoint endpoint) {
  const Field* field = find_field(member.key, endpoint);
  if (field == nullptr) return unknown_field(member.key, endpoint);
  if (field->policy == Honoured || member.value.is_null() || accepts(*field, member.value))
    return std::nullopt;
  const std::string name(field->name);
  if (field->policy == Neutral) {
    return bad_field(
        name, fmt::format("expected {} or null, found {}", field->accepts, describe(member.value)),
        "unsupported_value");
  }
  return bad_field(
      name,
      fmt::format(
          "is not supported: {}{}", field->why,
          field->accepts.empty() ? "" : fmt::format("; accepted only as {}", field->accepts)),
      "unsupported_parameter");
}

}  // namespace

std::span<const Field> fields() { return kFields; }

std::optional<ApiError> check_fields(const JsonValue::Object& body, Endpoint endpoint) {
  for (const text::JsonMember& member : body) {
    if (std::optional<ApiError> error = check_field(member, endpoint)) return error;
  }
  return std::nullopt;
}

std::string_view field_in(std::string_view message) {
  const std::string_view path = message.substr(0, message.find_first_of(" :"));
  const std::string_view root = path.substr(0, path.find_first_of("[."));
  const bool is_field = std::any_of(std::begin(kFields), std::end(kFields),
                                    [&](const Field& field) { return field.name == root; });
  return is_field ? path : std::string_view();
}

}  // namespace deltafin::serve
