// The recorded conversations and outputs in tests/golden/chat, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "io/file.h"
#include "text/chat/chat_options.h"
#include "text/chat/json_value.h"

namespace deltafin::text {

inline JsonValue read_chat_golden(const std::string& name) {
  const std::string path = std::string(DELTAFIN_SOURCE_DIR "/tests/golden/chat/") + name;
  return parse_json(io::read_text(io::PosixStorage(), path, 16u << 20).value(), JsonDialect::Strict)
      .value();
}

inline const JsonValue& field(const JsonValue& object, std::string_view key) {
  static const JsonValue null;
  const JsonValue* found = object.find(key);
  return found != nullptr ? *found : null;
}
inline std::string string_field(const JsonValue& object, std::string_view key) {
  const std::string* string = field(object, key).as_string();
  return string != nullptr ? *string : "";
}
inline std::optional<bool> bool_field(const JsonValue& object, std::string_view key) {
  const bool* truth = field(object, key).as_bool();
  return truth != nullptr ? std::optional(*truth) : std::nullopt;
}

// The options of a recorded case.
inline ChatOptions options_of(const JsonValue& golden) {
  const JsonValue& given = field(golden, "options");
  ChatOptions options;
  options.add_generation_prompt = bool_field(given, "add_generation_prompt").value();
  options.thinking = bool_field(given, "thinking");
  if (!options.thinking) options.thinking = bool_field(given, "enable_thinking");
  if (given.find("thinking_effort")) options.effort = string_field(given, "thinking_effort");
  options.tool_choice = string_field(given, "tool_choice");
  options.response_format = field(given, "response_format");
  if (const JsonValue::Array* prompts = field(given, "image_prompts").as_array()) {
    for (const JsonValue& prompt : *prompts) options.image_prompts.push_back(*prompt.as_string());
  }
  options.number_media = bool_field(given, "add_vision_id").value_or(false);
  return options;
}

}  // namespace deltafin::text
