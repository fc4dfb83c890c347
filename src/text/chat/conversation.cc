#include "text/chat/conversation.h"

#include <fmt/format.h>

#include <algorithm>

namespace deltafin::text {

std::string text_of(const Content& content) {
  if (const std::string* string = std::get_if<std::string>(&content)) return *string;
  std::string text;
  if (const auto* parts = std::get_if<std::vector<ContentPart>>(&content)) {
    for (const ContentPart& part : *parts) text += part.text;
  }
  return text;
}

bool Conversation::has_media() const {
  return std::any_of(messages.begin(), messages.end(), [](const Message& message) {
    const auto* parts = std::get_if<std::vector<ContentPart>>(&message.content);
    return parts != nullptr && std::any_of(parts->begin(), parts->end(), [](const auto& part) {
             return part.kind != ContentPart::Kind::Text;
           });
  });
}

namespace {

std::unexpected<Error> wrong_kind(const std::string& path, std::string_view expected,
                                  const JsonValue& found) {
  return fail(ErrorCode::Usage,
              fmt::format("{}: expected {}, found {}", path, expected, kind_of(found)));
}

// Null counts as absent.
Result<std::optional<std::string>> optional_string(const JsonValue& object, std::string_view key,
                                                   const std::string& path) {
  const JsonValue* member = object.find(key);
  if (member == nullptr || member->is_null()) return std::optional<std::string>();
  if (const std::string* string = member->as_string()) return std::optional(*string);
  return wrong_kind(fmt::format("{}.{}", path, key), "a string", *member);
}

Result<std::string> string_or_empty(const JsonValue& object, std::string_view key,
                                    const std::string& path) {
  TRY(const std::optional<std::string> string, optional_string(object, key, path));
  return string.value_or("");
}

Result<Role> parse_role(const JsonValue& message, const std::string& path) {
  TRY(const std::optional<std::string> role, optional_string(message, "role", path));
  const std::string_view name = role ? std::string_view(*role) : std::string_view();
  if (name == "system") return Role::System;
  if (name == "user") return Role::User;
  if (name == "assistant") return Role::Assistant;
  if (name == "tool") return Role::Tool;
  // Some templates drop a message of another role without a word, others take it for a system
  // message.
  return fail(ErrorCode::Usage,
              fmt::format("{}.role: expected system, user, assistant or tool, found {}", path,
                          role ? fmt::format("\"{}\"", *role) : "none"));
}

Result<ContentPart> parse_part(const JsonValue& part, const std::string& path) {
  if (part.as_object() == nullptr) return wrong_kind(path, "an object", part);
  TRY(const std::string type, string_or_empty(part, "type", path));
  if (type == "image" || type == "image_url" || part.find("image") || part.find("image_url")) {
    return ContentPart{ContentPart::Kind::Image, ""};
  }
  if (type == "video" || part.find("video")) return ContentPart{ContentPart::Kind::Video, ""};
  TRY(std::optional<std::string> text, optional_string(part, "text", path));
  if (!text) {
    return fail(ErrorCode::Usage,
                fmt::format("{}: expected a part with text, an image or a video", path));
  }
  return ContentPart{ContentPart::Kind::Text, *std::move(text)};
}

Result<Content> parse_content(const JsonValue& message, const std::string& message_path) {
  const std::string path = message_path + ".content";
  const JsonValue* content = message.find("content");
  if (content == nullptr || content->is_null()) return Content();
  if (const std::string* string = content->as_string()) return Content(*string);
  const JsonValue::Array* array = content->as_array();
  if (array == nullptr) return wrong_kind(path, "a string or an array of parts", *content);
  std::vector<ContentPart> parts;
  for (size_t i = 0; i < array->size(); ++i) {
    TRY(ContentPart part, parse_part((*array)[i], fmt::format("{}[{}]", path, i)));
    parts.push_back(std::move(part));
  }
  return Content(std::move(parts));
}

Result<ToolCall> parse_call(const JsonValue& call, std::string path) {
  if (call.as_object() == nullptr) return wrong_kind(path, "an object", call);
  ToolCall parsed;
  TRY(parsed.id, string_or_empty(call, "id", path));
  const JsonValue* function = call.find("function");
  if (function != nullptr) {
    path += ".function";
    if (function->as_object() == nullptr) return wrong_kind(path, "an object", *function);
  } else {
    function = &call;
  }
  TRY(parsed.name, string_or_empty(*function, "name", path));
  if (parsed.name.empty()) {
    return fail(ErrorCode::Usage, path + ".name: expected the name of a function, found none");
  }
  if (const JsonValue* arguments = function->find("arguments")) {
    if (arguments->as_array() || arguments->as_bool() || arguments->as_number()) {
      return wrong_kind(path + ".arguments", "an object or a string", *arguments);
    }
    parsed.arguments = *arguments;
  }
  return parsed;
}

// The elements of an array of objects; null or absent: none.
Result<JsonValue::Array> parse_objects(const JsonValue* value, const std::string& path) {
  if (value == nullptr || value->is_null()) return JsonValue::Array();
  const JsonValue::Array* array = value->as_array();
  if (array == nullptr) return wrong_kind(path, "an array", *value);
  for (size_t i = 0; i < array->size(); ++i) {
    if ((*array)[i].as_object() == nullptr) {
      return wrong_kind(fmt::format("{}[{}]", path, i), "an object", (*array)[i]);
    }
  }
  return *array;
}

Status parse_calls(const JsonValue& message, const std::string& path, Message& parsed) {
  TRY(const JsonValue::Array calls, parse_objects(message.find("tool_calls"), path));
  if (!calls.empty() && parsed.role != Role::Assistant) {
    return fail(ErrorCode::Usage, path + ": only a message of the assistant can have calls");
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    TRY(ToolCall call, parse_call(calls[i], fmt::format("{}[{}]", path, i)));
    parsed.tool_calls.push_back(std::move(call));
  }
  return {};
}

Result<Message> parse_message(const JsonValue& message, const std::string& path) {
  if (message.as_object() == nullptr) return wrong_kind(path, "an object", message);
  Message parsed;
  TRY(parsed.role, parse_role(message, path));
  TRY(parsed.name, string_or_empty(message, "name", path));
  TRY(parsed.content, parse_content(message, path));
  TRY(parsed.reasoning_content, optional_string(message, "reasoning_content", path));
  TRY(parsed.reasoning, optional_string(message, "reasoning", path));
  TRY_STATUS(parse_calls(message, path + ".tool_calls", parsed));
  // `id` counts only where the other key is not there at all.
  const char* id_key = message.find("tool_call_id") ? "tool_call_id" : "id";
  TRY(parsed.tool_call_id, string_or_empty(message, id_key, path));
  TRY(parsed.tool, optional_string(message, "tool", path));
  TRY(parsed.tools, parse_objects(message.find("tools"), path + ".tools"));
  return parsed;
}

}  // namespace

Result<Conversation> parse_conversation(const JsonValue& messages, const JsonValue& tools) {
  Conversation conversation;
  const JsonValue::Array* array = messages.as_array();
  if (array == nullptr) return wrong_kind("messages", "an array", messages);
  for (size_t i = 0; i < array->size(); ++i) {
    TRY(Message message, parse_message((*array)[i], fmt::format("messages[{}]", i)));
    conversation.messages.push_back(std::move(message));
  }
  TRY(conversation.tools, parse_objects(&tools, "tools"));
  return conversation;
}

}  // namespace deltafin::text
