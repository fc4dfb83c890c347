#include "serve/api/tokenize_request.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "serve/api/field_reader.h"
#include "serve/api/generation_fields.h"
#include "serve/api/token_text.h"
#include "text/stream_decoder.h"

namespace deltafin::serve {

using text::JsonValue;

namespace {

// "add_special" may be false, which is all that there is: no token is ever added.
const std::array<std::string, 7> kTokenizeFields = {
    "model", "text", "prompt", "content", "parse_special", "with_pieces", "add_special"};
const std::array<std::string, 2> kDetokenizeFields = {"model", "tokens"};

void read_text(FieldReader& fields, TokenizeRequest& request) {
  const char* found = nullptr;
  for (const char* name : {"text", "prompt", "content"}) {
    const std::string* text = fields.string(name);
    if (text == nullptr) continue;
    if (found != nullptr) {
      fields.wrong(name, fmt::format("means the same as {}; send one of them", found));
      return;
    }
    found = name;
    request.text = *text;
  }
  if (found == nullptr)
    fields.wrong("text", "is missing; expected a string", "missing_required_parameter");
}

}  // namespace

ApiResult<TokenizeRequest> parse_tokenize_request(std::string_view body,
                                                  const std::string& model_id) {
  const ApiResult<JsonValue> json = parse_body(body);
  if (!json) return std::unexpected(json.error());
  FirstError errors;
  FieldReader fields(*json->as_object(), errors);
  fields.only(kTokenizeFields);
  read_model(fields, model_id);
  TokenizeRequest request;
  read_text(fields, request);
  request.parse_special = fields.boolean("parse_special").value_or(false);
  request.with_pieces = fields.boolean("with_pieces").value_or(false);
  if (fields.boolean("add_special").value_or(false))
    fields.wrong("add_special", "is not supported: no token is ever added to a text",
                 "unsupported_value");
  if (errors.get()) return std::unexpected(*errors.get());
  return request;
}

ApiResult<std::vector<TokenId>> parse_detokenize_request(std::string_view body,
                                                         const std::string& model_id,
                                                         size_t vocab_size) {
  const ApiResult<JsonValue> json = parse_body(body);
  if (!json) return std::unexpected(json.error());
  FirstError errors;
  FieldReader fields(*json->as_object(), errors);
  fields.only(kDetokenizeFields);
  read_model(fields, model_id);
  std::vector<TokenId> tokens;
  if (const JsonValue::Array* array = fields.array("tokens")) {
    tokens = read_ids(fields, *array, "tokens", vocab_size);
  } else {
    fields.wrong("tokens", "is missing; expected an array of token ids",
                 "missing_required_parameter");
  }
  if (errors.get()) return std::unexpected(*errors.get());
  return tokens;
}

std::string tokenize_json(std::span<const TokenId> tokens, const std::vector<std::string>* pieces) {
  nlohmann::ordered_json json = {{"tokens", tokens}, {"count", tokens.size()}};
  if (pieces != nullptr) {
    json["pieces"] = nlohmann::ordered_json::array();
    for (const std::string& piece : *pieces) json["pieces"].push_back(completion_token(piece));
  }
  return json.dump();
}

std::string detokenize_json(std::string_view bytes) {
  text::StreamDecoder decoder;
  std::string text = decoder.push(bytes);
  text += decoder.finish();
  return nlohmann::ordered_json({{"text", std::move(text)}}).dump();
}

}  // namespace deltafin::serve
