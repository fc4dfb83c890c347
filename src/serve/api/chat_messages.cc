#include "serve/api/chat_messages.h"

#include <fmt/format.h>

#include <array>

namespace deltafin::serve {

using text::JsonMember;
using text::JsonValue;

namespace {

// What may be in a message. Clients send answers back as they got them, so there are members that
// only answers have; those in the last row are empty then, and say nothing.
const std::array<std::string, 14> kMessageFields = {
    "role",        "content", "name",  "tool_calls",        "tool_call_id",
    "id",          "tool",    "tools", "reasoning_content", "reasoning",
    "annotations", "refusal", "audio", "function_call"};
constexpr size_t kSilentFields = 4;

const JsonValue* find(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void check_part(FieldReader& body, const JsonValue& part, const std::string& path) {
  if (part.as_object() == nullptr) {
    body.wrong(path, fmt::format("expected an object, found {}", describe(part)));
    return;
  }
  const JsonValue* type = find(part, "type");
  const std::string* name = type == nullptr ? nullptr : type->as_string();
  if (name != nullptr && *name == "text") {
    FieldReader reader(*part.as_object(), body.errors(), path + ".");
    const std::array<std::string, 2> known = {"type", "text"};
    reader.only(known);
    if (reader.find("text") == nullptr)
      reader.wrong("text", "expected a string, found none", "missing_required_parameter");
    return;
  }
  body.wrong(path,
             fmt::format("expected a part of type \"text\", found {}; this server reads only text",
                         type == nullptr ? "no type" : describe(*type)),
             "unsupported_value");
}

void check_fields_of_message(FieldReader& body, const JsonValue::Object& message,
                             const std::string& path) {
  FieldReader reader(message, body.errors(), path + ".");
  reader.only(kMessageFields);
  for (size_t i = kMessageFields.size() - kSilentFields; i < kMessageFields.size(); ++i) {
    const std::string& name = kMessageFields[i];
    const JsonValue* value = reader.find(name);
    if (value == nullptr || (value->as_array() != nullptr && value->as_array()->empty())) continue;
    reader.wrong(name, fmt::format("is not supported; expected null, found {}", describe(*value)),
                 "unsupported_value");
  }
}

void check_message(FieldReader& body, const JsonValue& message, const std::string& path) {
  const JsonValue::Object* object = message.as_object();
  if (object == nullptr) return;  // text::parse_conversation() says it
  check_fields_of_message(body, *object, path);
  const JsonValue* content = find(message, "content");
  const JsonValue* role = find(message, "role");
  if (content == nullptr) {
    // What an assistant says may be calls or reasoning alone.
    const std::string* name = role == nullptr ? nullptr : role->as_string();
    if (name != nullptr && *name != "assistant") {
      body.wrong(path + ".content", "expected a string or an array of parts, found none",
                 "missing_required_parameter");
    }
    return;
  }
  const JsonValue::Array* parts = content->as_array();
  if (parts == nullptr) return;
  for (size_t i = 0; i < parts->size(); ++i)
    check_part(body, (*parts)[i], fmt::format("{}.content[{}]", path, i));
}

// The messages, with role developer as system.
JsonValue with_known_roles(JsonValue::Array messages) {
  for (JsonValue& message : messages) {
    JsonValue::Object* object = std::get_if<JsonValue::Object>(&message.value);
    if (object == nullptr) continue;
    for (JsonMember& member : *object) {
      const std::string* role = member.value.as_string();
      if (member.key == "role" && role != nullptr && *role == "developer")
        member.value.value = std::string("system");
    }
  }
  return {std::move(messages)};
}

void check_tool(FieldReader& body, const JsonValue& tool, const std::string& path) {
  const JsonValue::Object* object = tool.as_object();
  if (object == nullptr) return;  // text::parse_conversation() says it
  FieldReader reader(*object, body.errors(), path + ".");
  const std::string* type = reader.string("type");
  if (type == nullptr || *type != "function") {
    reader.expected("type", "\"function\"");
    return;
  }
  const JsonValue::Object* function = reader.object("function");
  if (function == nullptr) {
    reader.expected("function", "an object");
    return;
  }
  FieldReader fields(*function, body.errors(), path + ".function.");
  const std::string* name = fields.string("name");
  if (name == nullptr || name->empty()) fields.expected("name", "the name of a function");
  fields.string("description");
  fields.object("parameters");
}

}  // namespace

text::Conversation read_conversation(FieldReader& body) {
  const JsonValue::Array* messages = body.array("messages");
  if (messages == nullptr || messages->empty()) {
    const bool is_missing = body.find("messages") == nullptr;
    body.wrong("messages",
               is_missing ? "is missing; expected an array of messages"
                          : "is empty; expected at least one message",
               is_missing ? "missing_required_parameter" : "invalid_value");
    return {};
  }
  for (size_t i = 0; i < messages->size(); ++i)
    check_message(body, (*messages)[i], fmt::format("messages[{}]", i));
  const JsonValue::Array* tools = body.array("tools");
  for (size_t i = 0; tools != nullptr && i < tools->size(); ++i)
    check_tool(body, (*tools)[i], fmt::format("tools[{}]", i));

  Result<text::Conversation> conversation = text::parse_conversation(
      with_known_roles(*messages), tools == nullptr ? JsonValue() : JsonValue{*tools});
  if (!conversation) {
    body.errors().set(to_api_error(conversation.error()));
    return {};
  }
  for (text::Message& message : conversation->messages) {
    if (message.reasoning_content.value_or("").empty())
      message.reasoning_content = message.reasoning;
  }
  return *std::move(conversation);
}

}  // namespace deltafin::serve
