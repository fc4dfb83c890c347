#include <fmt/format.h>

#include "base/limits.h"
#include "serve/api/field_lists.h"
#include "serve/api/generation_fields.h"
#include "serve/api/generation_request.h"

namespace deltafin::serve {

using text::JsonValue;

namespace {

constexpr const char* kPromptForms =
    "a string, an array of token ids, or an array of strings or of arrays of token ids";

void wrong_prompt(FieldReader& body, const std::string& path, std::string_view expected,
                  const JsonValue& found) {
  body.wrong(path, fmt::format("expected {}, found {}", expected, describe(found)));
}

// `value` is a string or an array of ids.
CompletionPrompt read_prompt(FieldReader& body, const JsonValue& value, const std::string& path,
                             size_t vocab_size) {
  if (const std::string* string = value.as_string(); string != nullptr && !string->empty())
    return *string;
  if (const JsonValue::Array* array = value.as_array(); array != nullptr && !array->empty())
    return read_ids(body, *array, path, vocab_size);
  body.wrong(path, "is empty; there must be something to go on from");
  return {};
}

std::vector<CompletionPrompt> read_prompts(FieldReader& body, size_t vocab_size) {
  const JsonValue* value = body.find("prompt");
  if (value == nullptr) {
    body.wrong("prompt", fmt::format("is missing; expected {}", kPromptForms),
               "missing_required_parameter");
    return {};
  }
  const JsonValue::Array* array = value->as_array();
  if (array == nullptr && value->as_string() == nullptr) {
    body.expected("prompt", kPromptForms);
    return {};
  }
  if (array == nullptr || array->empty() || array->front().as_number() != nullptr)
    return {read_prompt(body, *value, "prompt", vocab_size)};
  if (array->size() > limits::kPromptsOfRequest) {
    body.wrong("prompt", fmt::format("has {} prompts; expected at most {}", array->size(),
                                     limits::kPromptsOfRequest));
    return {};
  }
  const size_t kind = array->front().value.index();
  const char* first = array->front().as_string()  ? "a string, as the first one"
                      : array->front().as_array() ? "an array of token ids, as the first one"
                                                  : "a string, or an array of token ids";
  std::vector<CompletionPrompt> prompts;
  for (size_t i = 0; i < array->size(); ++i) {
    const JsonValue& prompt = (*array)[i];
    const std::string path = fmt::format("prompt[{}]", i);
    if ((prompt.as_string() == nullptr && prompt.as_array() == nullptr) ||
        prompt.value.index() != kind) {
      wrong_prompt(body, path, first, prompt);
      return {};
    }
    prompts.push_back(read_prompt(body, prompt, path, vocab_size));
  }
  return prompts;
}

}  // namespace

ApiResult<CompletionRequest> parse_completion_request(std::string_view text,
                                                      const ApiDefaults& defaults) {
  const ApiResult<JsonValue> json = parse_body(text);
  if (!json) return std::unexpected(json.error());
  if (const auto error = check_fields(*json->as_object(), Endpoint::Completions))
    return std::unexpected(*error);
  FirstError errors;
  FieldReader body(*json->as_object(), errors);
  CompletionRequest request;
  read_model(body, defaults.model_id);
  request.prompts = read_prompts(body, defaults.vocab_size);
  request.max_tokens = read_max_tokens(body, 0).value_or(defaults.default_max_tokens);
  read_generation_fields(body, defaults, request);
  request.echo = body.boolean("echo").value_or(false);
  if (const auto logprobs = body.integer("logprobs", 0, limits::kTopLogprobs))
    request.logprobs = static_cast<uint32_t>(*logprobs);
  const std::optional<uint64_t> best_of = body.integer("best_of", 1, limits::kAnswers);
  if (best_of && *best_of != request.answers) {
    body.wrong("best_of",
               fmt::format("is {}, but n is {}; only as many answers are made as are returned",
                           *best_of, request.answers),
               "unsupported_value");
  }
  if (errors.get()) return std::unexpected(*errors.get());
  return request;
}

}  // namespace deltafin::serve
