// The types that declared tools give their parameters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/chat/json_value.h"

namespace deltafin::text {

class ToolSchemas {
 public:
  // As clients declare them, with or without `function` around name and parameters. What is not of
  // that form is no tool.
  explicit ToolSchemas(const JsonValue::Array& tools);

  bool empty() const { return tools_.empty(); }

  // The value that a model wrote as plain text for a parameter. One that may be a string is one
  // (but null may be null); others are parsed by their declared types, and stay a string if that
  // fails.
  JsonValue typed(std::string_view tool, std::string_view parameter, std::string_view text) const;

 private:
  struct Tool {
    std::string name;
    JsonValue properties;
  };

  std::vector<std::string> types_of(std::string_view tool, std::string_view parameter) const;

  std::vector<Tool> tools_;
};

}  // namespace deltafin::text
