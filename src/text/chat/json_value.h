// JSON as chat templates see it: they print back what a client sent, so members keep their order
// and numbers their kind (1 is not 1.0), however large.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/result.h"

namespace deltafin::text {

struct JsonMember;

// nlohmann::json, which reads our config files, sorts members and rounds large integers; published
// templates do neither.
struct JsonValue {
  // Spelled as Python spells it: "1", "1.0", "1e-07", "NaN", "Infinity".
  struct Number {
    std::string text;
    bool is_integer = true;
    bool operator==(const Number&) const = default;
  };
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;

  std::variant<std::nullptr_t, bool, Number, std::string, Array, Object> value;  // null by itself

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value); }
  // Null when it is something else.
  const bool* as_bool() const { return std::get_if<bool>(&value); }
  const Number* as_number() const { return std::get_if<Number>(&value); }
  const std::string* as_string() const { return std::get_if<std::string>(&value); }
  const Array* as_array() const { return std::get_if<Array>(&value); }
  const Object* as_object() const { return std::get_if<Object>(&value); }
  // The member of that name; null when there is none or this is no object.
  const JsonValue* find(std::string_view key) const;

  bool operator==(const JsonValue&) const;
};

struct JsonMember {
  std::string key;
  JsonValue value;
  bool operator==(const JsonMember&) const = default;
};

// Makes an object of members in their order; a key given again keeps its first place and gets the
// last value, as in Python. Constant time each.
class ObjectBuilder {
 public:
  void set(std::string key, JsonValue value);
  bool empty() const { return object_.empty(); }
  // The object; the builder is then as new.
  JsonValue take();

 private:
  JsonValue::Object object_;
  std::unordered_map<std::string, size_t> places_;
};

enum class JsonDialect : uint8_t {
  Strict,  // RFC 8259
  Python,  // what json.loads takes as well: NaN, Infinity, -Infinity, numbers beyond double
};

// One JSON text. A key given twice stays at its first place with its last value, as in Python. Lone
// surrogates are refused, for UTF-8 cannot hold them. Linear time; never throws. Errors: Usage,
// naming the byte offset; nested deeper than limits::kChatJsonDepth, or more values than
// limits::kChatJsonValues. `place` is then told in which member the error is, as in
// "messages[3].content"; empty: in none.
Result<JsonValue> parse_json(std::string_view text, JsonDialect dialect,
                             std::string* place = nullptr);

enum class JsonSpacing : uint8_t { Compact, Spaced };  // separators ",:" or ", " and ": "
enum class JsonKeys : uint8_t { AsGiven, Sorted };     // sorted: by code point, at every depth

// As Python's json.dumps(ensure_ascii=False) writes it: escapes ", \ and U+0000..001F only.
std::string dump_json(const JsonValue& value, JsonSpacing spacing, JsonKeys keys);

// As Python's str() writes a scalar: True, None, nan; strings as they are. Arrays and objects:
// their spaced JSON.
std::string python_str(const JsonValue& value);

// "a number", "an object", ...: for messages.
std::string_view kind_of(const JsonValue& value);

}  // namespace deltafin::text
