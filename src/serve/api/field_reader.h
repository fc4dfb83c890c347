// Members of a request's JSON by their kind, and the words for what is wrong with them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "serve/api/api_error.h"
#include "text/chat/json_value.h"

namespace deltafin::serve {

// A 400: "field: what". `field` is a path as in "messages[3].content".
ApiError bad_field(std::string field, std::string_view what,
                   std::string_view code = "invalid_value");

// What a client sent, of which a message shows so many bytes at most; whole code points.
inline constexpr size_t kShownBytes = 60;
std::string clip(std::string_view text, size_t bytes = kShownBytes);
// The name of a field that nobody knows, for a message: clipped, and "\"\"" when it has none.
std::string shown_name(std::string_view name);
// A value for a message: "x" as "\"x\"", scalars as they are, "an array", "an object".
std::string describe(const text::JsonValue& value);
// "is no field that this server knows; did you mean max_tokens?"
std::string suggestion(std::string_view name, std::span<const std::string> known);

// The body of a request: one JSON object. Errors: 400 invalid_json.
ApiResult<text::JsonValue> parse_body(std::string_view body);

// What was wrong first. Readers go on after an error, as if the field were absent; whoever has read
// everything looks here.
class FirstError {
 public:
  void set(ApiError error) {
    if (!error_) error_ = std::move(error);
  }
  const std::optional<ApiError>& get() const { return error_; }

 private:
  std::optional<ApiError> error_;
};

// Reads members of one object. Null is absent. A value of another kind, or out of range, is an
// error and reads as absent.
class FieldReader {
 public:
  // Both must outlive it. `path` stands in front of names in errors: "stream_options."
  FieldReader(const text::JsonValue::Object& object, FirstError& errors, std::string path = {})
      : object_(object), errors_(errors), path_(std::move(path)) {}

  const text::JsonValue* find(std::string_view name) const;  // null: absent
  std::optional<bool> boolean(std::string_view name);
  std::optional<uint64_t> integer(std::string_view name, uint64_t least, uint64_t most);
  // Infinite when it is too large for a float.
  std::optional<float> real(std::string_view name);
  const std::string* string(std::string_view name);
  const text::JsonValue::Array* array(std::string_view name);
  const text::JsonValue::Object* object(std::string_view name);

  // Every name must be among these. A member that is null may have any name.
  void only(std::span<const std::string> names);

  void wrong(std::string_view name, std::string_view what, std::string_view code = "invalid_value");
  // "expected WHAT, found VALUE"
  void expected(std::string_view name, std::string_view what);
  FirstError& errors() { return errors_; }
  std::string path(std::string_view name) const { return path_ + std::string(name); }

 private:
  const text::JsonValue::Object& object_;
  FirstError& errors_;
  std::string path_;
};

// Nothing when it is no integer within the bounds.
std::optional<uint64_t> integer_of(const text::JsonValue& value, uint64_t least, uint64_t most);
// Nothing when it is no number; infinite when it is too large for a float.
std::optional<float> real_of(const text::JsonValue& value);

}  // namespace deltafin::serve
