#include "serve/api/field_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/suggestions.h"

namespace deltafin::serve {

using text::JsonValue;

namespace {

constexpr const char* kInvalidRequest = "invalid_request_error";

}  // namespace

ApiError bad_field(std::string field, std::string_view what, std::string_view code) {
  std::string message = fmt::format("{}: {}", field, what);
  return {.status = 400,
          .message = std::move(message),
          .type = kInvalidRequest,
          .param = std::move(field),
          .code = std::string(code)};
}

std::string clip(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  size_t size = bytes;
  // Not within a code point: those go on with bytes 10xxxxxx.
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return std::string(text.substr(0, size)) + "...";
}

std::string shown_name(std::string_view name) { return name.empty() ? "\"\"" : clip(name); }

std::string describe(const JsonValue& value) {
  if (const std::string* string = value.as_string()) return fmt::format("\"{}\"", clip(*string));
  if (const JsonValue::Number* number = value.as_number()) return clip(number->text);
  if (const bool* boolean = value.as_bool()) return *boolean ? "true" : "false";
  return std::string(text::kind_of(value));
}

std::string suggestion(std::string_view name, std::span<const std::string> known) {
  std::string text = "is no field that this server knows";
  // The distance takes time with the length, and no name is that long.
  if (name.size() > kShownBytes) return text;
  const std::optional<std::string> meant = closest(name, known);
  if (meant) text += fmt::format("; did you mean {}?", *meant);
  return text;
}

ApiResult<JsonValue> parse_body(std::string_view body) {
  std::string place;
  const auto invalid = [&](std::string message) {
    return std::unexpected(ApiError{.status = 400,
                                    .message = std::move(message),
                                    .type = kInvalidRequest,
                                    .param = std::move(place),
                                    .code = "invalid_json"});
  };
  if (body.empty()) return invalid("the body is empty; expected a JSON object");
  Result<JsonValue> value = text::parse_json(body, text::JsonDialect::Strict, &place);
  if (!value) return invalid("the body: " + value.error().what);
  if (value->as_object() == nullptr)
    return invalid(fmt::format("the body: expected a JSON object, found {}", describe(*value)));
  return *std::move(value);
}

std::optional<uint64_t> integer_of(const JsonValue& value, uint64_t least, uint64_t most) {
  const JsonValue::Number* number = value.as_number();
  if (number == nullptr || !number->is_integer) return std::nullopt;
  uint64_t integer = 0;
  const char* end = number->text.data() + number->text.size();
  const auto [stopped, error] = std::from_chars(number->text.data(), end, integer);
  if (error != std::errc() || stopped != end || integer < least || integer > most)
    return std::nullopt;
  return integer;
}

std::optional<float> real_of(const JsonValue& value) {
  const JsonValue::Number* number = value.as_number();
  if (number == nullptr) return std::nullopt;
  constexpr double kMost = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  double real = 0;
  const char* begin = number->text.data();
  // Out of range can only be an integer of many digits: JSON that a double cannot hold is refused,
  // and what is too small for one has become 0.
  if (std::from_chars(begin, begin + number->text.size(), real).ec != std::errc())
    real = std::numeric_limits<double>::infinity() * (number->text.starts_with('-') ? -1 : 1);
  if (real > kMost) return kInfinity;
  if (real < -kMost) return -kInfinity;
  return static_cast<float>(real);
}

const JsonValue* FieldReader::find(std::string_view name) const {
  const auto found =
      std::find_if(object_.begin(), object_.end(),
                   [&](const text::JsonMember& member) { return member.key == name; });
  return found == object_.end() || found->value.is_null() ? nullptr : &found->value;
}

std::optional<bool> FieldReader::boolean(std::string_view name) {
  const JsonValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const bool* boolean = value->as_bool()) return *boolean;
  expected(name, "true or false");
  return std::nullopt;
}

std::optional<uint64_t> FieldReader::integer(std::string_view name, uint64_t least, uint64_t most) {
  const JsonValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<uint64_t> integer = integer_of(*value, least, most);
  if (!integer) expected(name, fmt::format("an integer from {} to {}", least, most));
  return integer;
}

std::optional<float> FieldReader::real(std::string_view name) {
  const JsonValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<float> real = real_of(*value);
  if (!real) expected(name, "a number");
  return real;
}

const std::string* FieldReader::string(std::string_view name) {
  const JsonValue* value = find(name);
  if (value == nullptr) return nullptr;
  if (value->as_string() == nullptr) expected(name, "a string");
  return value->as_string();
}

const JsonValue::Array* FieldReader::array(std::string_view name) {
  const JsonValue* value = find(name);
  if (value == nullptr) return nullptr;
  if (value->as_array() == nullptr) expected(name, "an array");
  return value->as_array();
}

const JsonValue::Object* FieldReader::object(std::string_view name) {
  const JsonValue* value = find(name);
  if (value == nullptr) return nullptr;
  if (value->as_object() == nullptr) expected(name, "an object");
  return value->as_object();
}

void FieldReader::only(std::span<const std::string> names) {
  for (const text::JsonMember& member : object_) {
    if (member.value.is_null() || std::ranges::find(names, member.key) != names.end()) continue;
    wrong(shown_name(member.key), suggestion(member.key, names), "unknown_parameter");
    return;
  }
}

void FieldReader::wrong(std::string_view name, std::string_view what, std::string_view code) {
  errors_.set(bad_field(path(name), what, code));
}

void FieldReader::expected(std::string_view name, std::string_view what) {
  const JsonValue* value = find(name);
  wrong(name,
        fmt::format("expected {}, found {}", what, value == nullptr ? "none" : describe(*value)));
}

}  // namespace deltafin::serve
