#include "text/chat/json_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/chat/python_number.h"

namespace deltafin::text {

const JsonValue* JsonValue::find(std::string_view key) const {
  const Object* object = as_object();
  if (object == nullptr) return nullptr;
  const auto found = std::find_if(object->begin(), object->end(),
                                  [&](const JsonMember& member) { return member.key == key; });
  return found == object->end() ? nullptr : &found->value;
}

bool JsonValue::operator==(const JsonValue& other) const { return value == other.value; }

void ObjectBuilder::set(std::string key, JsonValue value) {
  const auto [place, is_new] = places_.try_emplace(key, object_.size());
  if (is_new) {
    object_.push_back({std::move(key), std::move(value)});
  } else {
    object_[place->second].value = std::move(value);
  }
}

JsonValue ObjectBuilder::take() {
  places_.clear();
  return {std::exchange(object_, {})};
}

namespace {

void dump_string(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

class Dumper {
 public:
  Dumper(JsonSpacing spacing, JsonKeys keys)
      : comma_(spacing == JsonSpacing::Spaced ? ", " : ","),
        colon_(spacing == JsonSpacing::Spaced ? ": " : ":"),
        keys_(keys) {}

  void dump(const JsonValue& value, std::string& out) const {
    if (const bool* truth = value.as_bool()) {
      out += *truth ? "true" : "false";
    } else if (const JsonValue::Number* number = value.as_number()) {
      out += number->text;
    } else if (const std::string* string = value.as_string()) {
      dump_string(*string, out);
    } else if (const JsonValue::Array* array = value.as_array()) {
      dump_array(*array, out);
    } else if (const JsonValue::Object* object = value.as_object()) {
      dump_object(*object, out);
    } else {
      out += "null";
    }
  }

 private:
  void dump_array(const JsonValue::Array& array, std::string& out) const {
    out += '[';
    for (size_t i = 0; i < array.size(); ++i) {
      if (i > 0) out += comma_;
      dump(array[i], out);
    }
    out += ']';
  }

  void dump_object(const JsonValue::Object& object, std::string& out) const {
    std::vector<const JsonMember*> members;
    for (const JsonMember& member : object) members.push_back(&member);
    // The order of UTF-8 bytes, as char_traits compares them, is that of code points.
    if (keys_ == JsonKeys::Sorted) {
      std::sort(members.begin(), members.end(),
                [](const JsonMember* a, const JsonMember* b) { return a->key < b->key; });
    }
    out += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += comma_;
      dump_string(members[i]->key, out);
      out += colon_;
      dump(members[i]->value, out);
    }
    out += '}';
  }

  std::string_view comma_, colon_;
  JsonKeys keys_;
};

}  // namespace

std::string dump_json(const JsonValue& value, JsonSpacing spacing, JsonKeys keys) {
  std::string out;
  Dumper(spacing, keys).dump(value, out);
  return out;
}

std::string python_str(const JsonValue& value) {
  if (const bool* truth = value.as_bool()) return *truth ? "True" : "False";
  if (const std::string* string = value.as_string()) return *string;
  if (value.is_null()) return "None";
  if (const JsonValue::Number* number = value.as_number()) {
    if (number->text == "NaN") return "nan";
    if (number->text == "Infinity") return "inf";
    if (number->text == "-Infinity") return "-inf";
    return number->text;
  }
  return dump_json(value, JsonSpacing::Spaced, JsonKeys::AsGiven);
}

std::string_view kind_of(const JsonValue& value) {
  constexpr std::string_view kKinds[] = {"null",     "a boolean", "a number",
                                         "a string", "an array",  "an object"};
  return kKinds[value.value.index()];
}

}  // namespace deltafin::text
