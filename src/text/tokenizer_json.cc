#include "text/tokenizer_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <utility>

#include "base/limits.h"
#include "checkpoint/json_document.h"

namespace deltafin::text {

namespace {

namespace ondemand = simdjson::ondemand;

constexpr size_t kShownBytes = 60;
constexpr const char* kVocab = "model.vocab";
constexpr const char* kMerges = "model.merges";

std::unexpected<Error> refuse(std::string what) {
  return fail(ErrorCode::BadModel, std::move(what));
}

std::unexpected<Error> bad_json(simdjson::error_code code) {
  return refuse(fmt::format("not valid JSON: {}", simdjson::error_message(code)));
}

// Calls take(key, value) for every field of `object`.
template <class Take>
Status for_each_field(ondemand::object& object, Take take) {
  for (simdjson::simdjson_result<ondemand::field> field : object) {
    std::string_view key;
    if (const simdjson::error_code code = field.unescaped_key().get(key)) return bad_json(code);
    ondemand::value value;
    if (const simdjson::error_code code = field.value().get(value)) return bad_json(code);
    TRY_STATUS(take(key, value));
  }
  return {};
}

// "a b", as older files have it, or ["a", "b"].
Result<TokenizerJson::Merge> read_merge(ondemand::value& value) {
  constexpr const char* kExpected = R"(expected "a b" or ["a", "b"])";
  ondemand::json_type type = {};
  if (const simdjson::error_code code = value.type().get(type)) return bad_json(code);
  if (type == ondemand::json_type::string) {
    std::string_view both;
    if (const simdjson::error_code code = value.get_string().get(both)) return bad_json(code);
    const size_t space = both.find(' ');
    if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos)
      return refuse(fmt::format("found {}, {}", shown_letters(both), kExpected));
    return TokenizerJson::Merge{both.substr(0, space), both.substr(space + 1)};
  }
  ondemand::array parts;
  if (value.get_array().get(parts) != simdjson::SUCCESS)
    return refuse(fmt::format("found neither text nor list, {}", kExpected));
  std::vector<std::string_view> texts;
  for (simdjson::simdjson_result<ondemand::value> part : parts) {
    std::string_view text;
    if (part.get_string().get(text) != simdjson::SUCCESS || texts.size() == 2)
      return refuse(fmt::format("found a list of other than two texts, {}", kExpected));
    texts.push_back(text);
  }
  if (texts.size() != 2)
    return refuse(fmt::format("found a list of {} texts, {}", texts.size(), kExpected));
  return TokenizerJson::Merge{texts[0], texts[1]};
}

}  // namespace

struct TokenizerJson::Memory {
  std::string text;
  ondemand::parser parser;
};

TokenizerJson::TokenizerJson() : memory_(std::make_unique<Memory>()) {}
TokenizerJson::TokenizerJson(TokenizerJson&& other) noexcept = default;
TokenizerJson::~TokenizerJson() = default;

class TokenizerJson::Reader {
 public:
  explicit Reader(TokenizerJson& into) : into_(into) {}

  Status read();

 private:
  Status read_model(ondemand::value& value);
  Status read_vocab(ondemand::value& value);
  Status read_merges(ondemand::value& value);
  Status keep(std::string_view key, ondemand::value& value);

  TokenizerJson& into_;
  bool has_vocab_ = false;
  bool has_merges_ = false;
  std::string rest_;  // what is kept, as JSON
};

Result<TokenizerJson> TokenizerJson::read(std::string json) {
  TokenizerJson result;
  json.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  result.memory_->text = std::move(json);
  TRY_STATUS(Reader(result).read());
  return result;
}

Status TokenizerJson::Reader::read() {
  const std::string& text = into_.memory_->text;
  ondemand::document document;
  if (const simdjson::error_code code =
          into_.memory_->parser.iterate(text.data(), text.size(), text.capacity()).get(document))
    return bad_json(code);
  ondemand::object root;
  if (const simdjson::error_code code = document.get_object().get(root))
    return code == simdjson::INCORRECT_TYPE ? refuse("not a JSON object") : bad_json(code);
  rest_.push_back('{');
  TRY_STATUS(for_each_field(root, [&](std::string_view key, ondemand::value& value) -> Status {
    return key == "model" ? read_model(value) : keep(key, value);
  }));
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
    return refuse("not valid JSON: it goes on after the closing brace");
  Result<nlohmann::json> rest = checkpoint::parse_json_object(rest_ + "}");
  if (!rest)
    return std::unexpected(std::move(rest).error().within("all but the vocabulary and the merges"));
  into_.rest_ = std::move(*rest);
  if (!has_vocab_)
    return refuse(fmt::format("{}: found nothing, expected {{\"token\": id, ...}}", kVocab));
  if (!has_merges_) return refuse(fmt::format("{}: found nothing, expected a list", kMerges));
  return {};
}

Status TokenizerJson::Reader::keep(std::string_view key, ondemand::value& value) {
  std::string_view text;
  if (const simdjson::error_code code = simdjson::to_json_string(value).get(text))
    return bad_json(code);
  if (!rest_.ends_with('{')) rest_ += ',';
  rest_ += nlohmann::json(std::string(key)).dump();
  rest_ += ':';
  rest_ += text;
  return {};
}

Status TokenizerJson::Reader::read_model(ondemand::value& value) {
  ondemand::object model;
  if (value.get_object().get(model) != simdjson::SUCCESS)
    return refuse("model: found no object, expected one with vocab and merges");
  if (!rest_.ends_with('{')) rest_ += ',';
  rest_ += "\"model\":{";
  TRY_STATUS(for_each_field(model, [&](std::string_view key, ondemand::value& field) -> Status {
    if (key == "vocab") return read_vocab(field);
    if (key == "merges") return read_merges(field);
    return keep(key, field);
  }));
  rest_ += '}';
  return {};
}

Status TokenizerJson::Reader::read_vocab(ondemand::value& value) {
  if (std::exchange(has_vocab_, true))
    return refuse(fmt::format("{}: found twice, expected once", kVocab));
  ondemand::object vocab;
  if (value.get_object().get(vocab) != simdjson::SUCCESS)
    return refuse(fmt::format("{}: found no object, expected {{\"token\": id, ...}}", kVocab));
  return for_each_field(vocab, [&](std::string_view letters, ondemand::value& field) -> Status {
    uint64_t id = 0;
    if (field.get_uint64().get(id) != simdjson::SUCCESS)
      return refuse(
          fmt::format("{}: the id of {} is no integer from 0", kVocab, shown_letters(letters)));
    if (into_.vocab_.size() == limits::kVocabulary)
      return refuse(fmt::format("{}: more than {} tokens", kVocab, limits::kVocabulary));
    into_.vocab_.push_back({.letters = letters, .id = id});
    return {};
  });
}

Status TokenizerJson::Reader::read_merges(ondemand::value& value) {
  if (std::exchange(has_merges_, true))
    return refuse(fmt::format("{}: found twice, expected once", kMerges));
  ondemand::array merges;
  if (value.get_array().get(merges) != simdjson::SUCCESS)
    return refuse(fmt::format("{}: found no list, expected one", kMerges));
  for (simdjson::simdjson_result<ondemand::value> item : merges) {
    ondemand::value merge;
    if (const simdjson::error_code code = item.get(merge)) return bad_json(code);
    const size_t index = into_.merges_.size();
    if (index == limits::kVocabulary)
      return refuse(fmt::format("{}: more than {} merges", kMerges, limits::kVocabulary));
    Result<Merge> pair = read_merge(merge);
    if (!pair)
      return std::unexpected(std::move(pair).error().within(fmt::format("{}[{}]", kMerges, index)));
    into_.merges_.push_back(*pair);
  }
  return {};
}

std::string shown_letters(std::string_view letters) {
  return nlohmann::json(std::string(letters.substr(0, kShownBytes)))
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace deltafin::text
