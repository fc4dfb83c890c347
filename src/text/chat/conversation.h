// What a chat template turns into a prompt: messages and tools, in OpenAI's shape.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "text/chat/json_value.h"

namespace deltafin::text {

enum class Role : uint8_t { System, User, Assistant, Tool };

struct ContentPart {
  enum class Kind : uint8_t { Text, Image, Video };
  Kind kind = Kind::Text;
  std::string text;  // of a text part
};

// Nothing (null or absent), one string, or parts.
using Content = std::variant<std::monostate, std::string, std::vector<ContentPart>>;

// Its text parts put together.
std::string text_of(const Content& content);

struct ToolCall {
  std::string id;  // empty: none
  std::string name;
  // An object, or OpenAI's string with an object in it; a template says what else it takes.
  std::optional<JsonValue> arguments;
};

struct Message {
  Role role = Role::User;
  std::string name;  // empty: none
  Content content;
  // Of the assistant. Templates of K3 read `reasoning` where `reasoning_content` is absent or
  // empty; all others read only the latter.
  std::optional<std::string> reasoning_content;
  std::optional<std::string> reasoning;
  std::vector<ToolCall> tool_calls;
  // Of a tool's result: which call it answers; empty: not said.
  std::string tool_call_id;
  // Of a tool's result: the tool, which K3 prefers to `name`.
  std::optional<std::string> tool;
  // Of a system message: tools that are declared from here on (K3 only); empty: none.
  JsonValue::Array tools;
};

struct Conversation {
  std::vector<Message> messages;
  JsonValue::Array tools;  // each as the client sent it

  // Whether any message has an image or a video.
  bool has_media() const;
};

// From the JSON of a request: `messages` must be an array; `tools` an array or null. Members that
// this type does not have are ignored. A call may lack `function` around name and arguments.
// Errors: Usage, naming message and field: "messages[3].tool_calls[0].function.name: ...".
Result<Conversation> parse_conversation(const JsonValue& messages, const JsonValue& tools);

}  // namespace deltafin::text
