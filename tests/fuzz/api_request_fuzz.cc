// Whatever a client sends: the parsers of all bodies fail with a message, naming a field wherever
// the body is an object, or give a request that can run. The first byte chooses the body and the
// template.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/limits.h"
#include "engine/sampler.h"
#include "serve/api/generation_request.h"
#include "serve/api/tokenize_request.h"
#include "text/chat/chat_template.h"
#include "text/chat/stop_strings.h"
#include "text/utf8.h"

namespace deltafin::serve {
namespace {

constexpr size_t kVocabulary = 1000;

void check_error(const ApiError& error) {
  CHECK(error.status == 400 || error.status == 404);
  CHECK(!error.message.empty() && error.message.size() < 1000);
  CHECK(!error.param.empty() || error.code == "invalid_json");
  CHECK(!error.code.empty() && !error.type.empty());
  CHECK(!text::find_ill_formed(error.message));
  to_json(error);
}

void check_ids(const std::vector<TokenId>& ids) {
  CHECK(!ids.empty());
  for (const TokenId id : ids) CHECK(id >= 0 && static_cast<size_t>(id) < kVocabulary);
}

void check_fields(const GenerationFields& fields) {
  CHECK(engine::validate(fields.sampling, kVocabulary).has_value());
  CHECK(fields.answers >= 1 && fields.answers <= limits::kAnswers);
  CHECK(text::StopStrings::create(fields.stop).has_value());
  CHECK(fields.stream || !fields.include_usage);
  CHECK(!fields.logprobs || *fields.logprobs <= limits::kTopLogprobs);
  CHECK(!fields.timeout || fields.timeout->count() > 0);
  CHECK(fields.max_tokens.value_or(0) <= limits::kPositions);
}

void check_completion(std::string_view body, const ApiDefaults& defaults) {
  const auto request = parse_completion_request(body, defaults);
  if (!request) return check_error(request.error());
  check_fields(*request);
  CHECK(request->max_tokens.has_value());
  CHECK(!request->prompts.empty() && request->prompts.size() <= limits::kPromptsOfRequest);
  for (const CompletionPrompt& prompt : request->prompts) {
    if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) {
      check_ids(*ids);
    } else {
      CHECK(!std::get<std::string>(prompt).empty());
    }
  }
}

void check_chat(std::string_view body, const ApiDefaults& defaults) {
  const auto request = parse_chat_request(body, defaults);
  if (!request) return check_error(request.error());
  check_fields(*request);
  CHECK(request->max_tokens != 0);
  CHECK(!request->conversation.messages.empty());
  CHECK(!request->conversation.has_media());
  // A template may still refuse the conversation, and then names a place in the request.
  const auto segments = defaults.chat_template->render(request->conversation, request->options);
  if (!segments) {
    CHECK(segments.error().code == ErrorCode::Usage);
    to_api_error(segments.error());
  }
}

void check(std::string_view body, unsigned choice) {
  ApiDefaults defaults;
  defaults.model_id = "tiny";
  defaults.vocab_size = kVocabulary;
  const std::span<const text::ChatTemplate> templates = text::chat_templates();
  defaults.chat_template = &templates[choice / 4 % templates.size()];
  if (choice % 4 == 0) {
    check_completion(body, defaults);
  } else if (choice % 4 == 1) {
    check_chat(body, defaults);
  } else if (choice % 4 == 2) {
    const auto request = parse_tokenize_request(body, defaults.model_id);
    if (!request) check_error(request.error());
  } else {
    const auto ids = parse_detokenize_request(body, defaults.model_id, kVocabulary);
    if (!ids) return check_error(ids.error());
    if (!ids->empty()) check_ids(*ids);
  }
}

}  // namespace
}  // namespace deltafin::serve

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  deltafin::serve::check({reinterpret_cast<const char*>(data + 1), size - 1}, data[0]);
  return 0;
}
