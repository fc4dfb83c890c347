// The three lists of docs/api.md: the fields of a request that count, those that may be there, and
// those that are refused. A field that is in none of them is refused too. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "serve/api/api_error.h"
#include "text/chat/json_value.h"

namespace deltafin::serve {

enum class Endpoint : uint8_t { Completions, Chat };

enum class FieldPolicy : uint8_t {
  Honoured,  // read by the parser of the request
  Neutral,   // accepted, and nothing depends on it
  Refused,   // would change the answer, and is not implemented
};

struct Field {
  std::string_view name;
  bool completions, chat;  // of which endpoint it is a field
  FieldPolicy policy;
  // The values it may have, separated by ", ": JSON texts, or kinds: string, boolean, object. Null
  // may be said for every field. Empty: only null, and of honoured ones the parser decides.
  std::string_view accepts = {};
  // Of a refused one: what the client is told.
  std::string_view why = {};
};

std::span<const Field> fields();

// Whether every member of the body may be there. Errors: 400, naming the first that may not, and
// the field that was probably meant.
std::optional<ApiError> check_fields(const text::JsonValue::Object& body, Endpoint endpoint);

// The field that an error message of another room is about, "top_p is 2; ..." or
// "messages[3].content: ..."; empty when it is about none.
std::string_view field_in(std::string_view message);

}  // namespace deltafin::serve
