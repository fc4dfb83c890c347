#include "text/chat/tool_schemas.h"

#include <algorithm>

#include "text/chat/python_text.h"

namespace deltafin::text {

namespace {

bool is_of_type(const JsonValue& value, std::string_view type) {
  if (type == "integer" || type == "number") return value.as_number() != nullptr;
  if (type == "boolean") return value.as_bool() != nullptr;
  if (type == "null") return value.is_null();
  if (type == "object") return value.as_object() != nullptr;
  if (type == "array") return value.as_array() != nullptr;
  return false;
}

}  // namespace

ToolSchemas::ToolSchemas(const JsonValue::Array& tools) {
  for (const JsonValue& tool : tools) {
    const JsonValue* function = tool.find("function");
    if (function == nullptr) function = &tool;
    const JsonValue* name = function->find("name");
    if (name == nullptr || name->as_string() == nullptr) continue;
    const JsonValue* parameters = function->find("parameters");
    const JsonValue* properties = parameters != nullptr ? parameters->find("properties") : nullptr;
    tools_.push_back({*name->as_string(), properties != nullptr ? *properties : JsonValue()});
  }
}

std::vector<std::string> ToolSchemas::types_of(std::string_view tool,
                                               std::string_view parameter) const {
  const auto found = std::find_if(tools_.begin(), tools_.end(),
                                  [&](const Tool& candidate) { return candidate.name == tool; });
  if (found == tools_.end()) return {};
  const JsonValue* schema = found->properties.find(parameter);
  const JsonValue* type = schema != nullptr ? schema->find("type") : nullptr;
  if (type == nullptr) return {};
  if (const std::string* one = type->as_string()) return {*one};
  std::vector<std::string> types;
  if (const JsonValue::Array* list = type->as_array()) {
    for (const JsonValue& element : *list) {
      if (const std::string* one = element.as_string()) types.push_back(*one);
    }
  }
  return types;
}

JsonValue ToolSchemas::typed(std::string_view tool, std::string_view parameter,
                             std::string_view text) const {
  const std::vector<std::string> types = types_of(tool, parameter);
  const auto has = [&](std::string_view type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  const JsonValue as_string{std::string(text)};
  const std::string_view word = strip(text);
  if (has("null") && word == "null") return JsonValue();
  if (has("string")) return as_string;
  if (has("boolean") && word == "True") return JsonValue{true};
  if (has("boolean") && word == "False") return JsonValue{false};
  const Result<JsonValue> parsed = parse_json(word, JsonDialect::Strict);
  if (!parsed) return as_string;
  const bool fits = std::any_of(types.begin(), types.end(),
                                [&](const std::string& type) { return is_of_type(*parsed, type); });
  return fits ? *parsed : as_string;
}

}  // namespace deltafin::text
