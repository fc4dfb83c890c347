#include "serve/api/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/limits.h"
#include "text/chat/stop_strings.h"

namespace deltafin::serve {

using text::JsonValue;

namespace {

std::vector<std::string> read_stop(FieldReader& body) {
  const JsonValue* stop = body.find("stop");
  if (stop == nullptr) return {};
  std::vector<std::string> stops;
  if (const std::string* one = stop->as_string()) {
    stops.push_back(*one);
  } else if (const JsonValue::Array* array = stop->as_array()) {
    for (size_t i = 0; i < array->size() && i <= limits::kStops; ++i) {
      const std::string* string = (*array)[i].as_string();
      if (string == nullptr) {
        body.wrong(fmt::format("stop[{}]", i),
                   fmt::format("expected a string, found {}", describe((*array)[i])));
        return {};
      }
      stops.push_back(*string);
    }
  } else {
    body.expected("stop", "a string or an array of strings");
  }
  const Result<text::StopStrings> valid = text::StopStrings::create(stops);
  if (!valid) body.errors().set(to_api_error(valid.error()));
  return stops;
}

void read_stream(FieldReader& body, GenerationFields& fields) {
  fields.stream = body.boolean("stream").value_or(false);
  const JsonValue::Object* object = body.object("stream_options");
  if (object == nullptr) return;
  if (!fields.stream) {
    body.wrong("stream_options", "is only for \"stream\": true");
    return;
  }
  constexpr const char* kObfuscation = "include_obfuscation";
  FieldReader options(*object, body.errors(), "stream_options.");
  const std::array<std::string, 2> known = {"include_usage", kObfuscation};
  options.only(known);
  fields.include_usage = options.boolean("include_usage").value_or(false);
  if (options.boolean(kObfuscation).value_or(false))
    options.wrong(kObfuscation, "is not supported; send false", "unsupported_value");
}

std::optional<std::chrono::milliseconds> read_timeout(FieldReader& body) {
  const std::optional<float> seconds = body.real("timeout");
  if (!seconds) return std::nullopt;
  if (!(*seconds > 0 && *seconds <= static_cast<float>(limits::kTimeoutSeconds))) {
    body.expected("timeout",
                  fmt::format("more than 0 and at most {} seconds", limits::kTimeoutSeconds));
    return std::nullopt;
  }
  return std::chrono::milliseconds(std::max<int64_t>(1, std::llround(*seconds * 1000.0)));
}

// {"50256": -100}: token ids in decimal.
std::vector<std::pair<TokenId, float>> read_logit_bias(FieldReader& body, size_t vocab_size) {
  const JsonValue::Object* object = body.object("logit_bias");
  if (object == nullptr) return {};
  std::vector<std::pair<TokenId, float>> biases;
  for (const text::JsonMember& member : *object) {
    const std::string path = "logit_bias." + clip(member.key);
    // "007" would be another name of a token that may have been named already.
    const bool is_decimal = member.key == "0" || !member.key.starts_with('0');
    const std::optional<uint64_t> id =
        integer_of({JsonValue::Number{member.key, true}}, 0, vocab_size - 1);
    if (!id || !is_decimal) {
      body.wrong(path, fmt::format("expected a token id from 0 to {} as name", vocab_size - 1));
      return {};
    }
    const std::optional<float> bias = real_of(member.value);
    if (!bias || !std::isfinite(*bias)) {
      body.wrong(path, fmt::format("expected a finite number, found {}", describe(member.value)));
      return {};
    }
    biases.emplace_back(static_cast<TokenId>(*id), *bias);
  }
  return biases;
}

// -1 is what others call all.
std::optional<uint32_t> read_top_k(FieldReader& body) {
  const JsonValue* value = body.find("top_k");
  if (value == nullptr) return std::nullopt;
  if (const JsonValue::Number* number = value->as_number(); number && number->text == "-1")
    return 0;
  const std::optional<uint64_t> top_k = integer_of(*value, 0, limits::kVocabulary);
  if (!top_k)
    body.expected("top_k", fmt::format("an integer from 0 (all) to {}", limits::kVocabulary));
  return static_cast<uint32_t>(top_k.value_or(0));
}

}  // namespace

void read_model(FieldReader& body, const std::string& model_id) {
  const std::string* model = body.string("model");
  if (model == nullptr || *model == model_id) return;
  body.errors().set(
      {.status = 404,
       .message = fmt::format("model: this server has {}, not {}", model_id, clip(*model)),
       .type = "invalid_request_error",
       .param = "model",
       .code = "model_not_found"});
}

std::optional<uint64_t> read_max_tokens(FieldReader& body, uint64_t least) {
  const auto tokens = body.integer("max_tokens", least, limits::kPositions);
  const auto completion_tokens = body.integer("max_completion_tokens", least, limits::kPositions);
  if (tokens && completion_tokens && *tokens != *completion_tokens) {
    body.wrong("max_completion_tokens", fmt::format("is {}, but max_tokens is {}; send one of them",
                                                    *completion_tokens, *tokens));
  }
  return tokens ? tokens : completion_tokens;
}

std::vector<TokenId> read_ids(FieldReader& body, const JsonValue::Array& array,
                              const std::string& path, size_t vocab_size) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < array.size(); ++i) {
    const std::optional<uint64_t> id = integer_of(array[i], 0, vocab_size - 1);
    if (!id) {
      body.wrong(fmt::format("{}[{}]", path, i),
                 fmt::format("expected a token id from 0 to {}, found {}", vocab_size - 1,
                             describe(array[i])));
      return {};
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

engine::SamplingParameters read_sampling(FieldReader& body, const ApiDefaults& defaults) {
  engine::SamplingParameters p = defaults.sampling;
  const std::optional<float> temperature = body.real("temperature");
  p.top_p = body.real("top_p").value_or(p.top_p);
  p.top_k = read_top_k(body).value_or(p.top_k);
  p.min_p = body.real("min_p").value_or(p.min_p);
  p.repetition_penalty = body.real("repetition_penalty").value_or(p.repetition_penalty);
  p.presence_penalty = body.real("presence_penalty").value_or(p.presence_penalty);
  p.frequency_penalty = body.real("frequency_penalty").value_or(p.frequency_penalty);
  p.logit_bias = read_logit_bias(body, defaults.vocab_size);
  p.seed = body.integer("seed", 0, UINT64_MAX).value_or(defaults.drawn_seed);
  p.choice = 0;
  // A cut only has a meaning when sampling. 1, 0 and 0, which clients send without being asked, cut
  // nothing.
  const bool cuts = (body.find("top_p") && p.top_p != 1) || (body.find("top_k") && p.top_k != 0) ||
                    (body.find("min_p") && p.min_p != 0);
  if (temperature) {
    p.temperature = *temperature;
  } else if (p.temperature == 0 && cuts) {
    p.temperature = 1;
  }
  if (const Status valid = engine::validate(p, defaults.vocab_size); !valid)
    body.errors().set(to_api_error(valid.error()));
  if (p.temperature == 0) {
    p.top_p = 1;
    p.top_k = 0;
    p.min_p = 0;
  }
  return p;
}

void read_generation_fields(FieldReader& body, const ApiDefaults& defaults,
                            GenerationFields& fields) {
  fields.sampling = read_sampling(body, defaults);
  fields.answers = static_cast<uint32_t>(body.integer("n", 1, limits::kAnswers).value_or(1));
  fields.stop = read_stop(body);
  read_stream(body, fields);
  fields.timeout = read_timeout(body);
}

}  // namespace deltafin::serve
