#include <fmt/format.h>

#include <array>

#include "base/limits.h"
#include "serve/api/chat_messages.h"
#include "serve/api/field_lists.h"
#include "serve/api/generation_fields.h"
#include "serve/api/generation_request.h"

namespace deltafin::serve {

using text::ChatTemplate;
using text::JsonValue;

namespace {

bool has_directives(const ChatTemplate* chat_template) {
  return chat_template != nullptr && chat_template->channels == text::ChannelFormat::KimiK3;
}

std::string name_of(const ChatTemplate* chat_template) {
  return chat_template == nullptr ? "of this model" : std::string(chat_template->name);
}

// Whether reasoning can be switched on and off.
bool can_choose_thinking(const ChatTemplate* chat_template) {
  text::ChatOptions on, off;
  on.thinking = true;
  off.thinking = false;
  return chat_template != nullptr && chat_template->start(on) != chat_template->start(off);
}

// Several fields may say the same thing; they must agree.
template <class T>
class Agreement {
 public:
  void say(FieldReader& reader, std::string_view name, T value) {
    if (!value_) {
      value_ = std::move(value);
      by_ = reader.path(name);
    } else if (*value_ != value) {
      reader.wrong(name, fmt::format("contradicts {}", by_));
    }
  }
  // Empty: nobody has said anything.
  const std::optional<T>& get() const { return value_; }
  const std::string& by() const { return by_; }

 private:
  std::optional<T> value_;
  std::string by_;
};

struct Reasoning {
  Agreement<bool> thinking;
  Agreement<std::string> effort;
};

// "none", or how much.
void read_effort(FieldReader& reader, Reasoning& reasoning) {
  constexpr const char* kName = "reasoning_effort";
  const std::string* effort = reader.string(kName);
  if (effort == nullptr) return;
  if (*effort == "none") {
    reasoning.thinking.say(reader, kName, false);
  } else if (*effort != "low" && *effort != "high" && *effort != "max") {
    reader.expected(kName, "none, low, high or max");
  } else {
    reasoning.effort.say(reader, kName, *effort);
  }
}

// A boolean, or {"type": "enabled"} as in Moonshot's API.
void read_thinking(FieldReader& body, Reasoning& reasoning) {
  const JsonValue* thinking = body.find("thinking");
  if (thinking == nullptr) return;
  if (const bool* boolean = thinking->as_bool()) {
    reasoning.thinking.say(body, "thinking", *boolean);
    return;
  }
  const JsonValue::Object* object = thinking->as_object();
  if (object == nullptr) {
    body.expected("thinking", "true, false or {\"type\": \"enabled\" or \"disabled\"}");
    return;
  }
  FieldReader reader(*object, body.errors(), "thinking.");
  const std::array<std::string, 1> known = {"type"};
  reader.only(known);
  const std::string* type = reader.string("type");
  if (type != nullptr && (*type == "enabled" || *type == "disabled")) {
    reasoning.thinking.say(reader, "type", *type == "enabled");
  } else {
    reader.expected("type", "\"enabled\" or \"disabled\"");
  }
}

void read_template_fields(FieldReader& body, Reasoning& reasoning) {
  const JsonValue::Object* object = body.object("chat_template_kwargs");
  if (object == nullptr) return;
  FieldReader reader(*object, body.errors(), "chat_template_kwargs.");
  const std::array<std::string, 3> known = {"thinking", "enable_thinking", "reasoning_effort"};
  reader.only(known);
  for (const char* name : {"thinking", "enable_thinking"}) {
    if (const std::optional<bool> value = reader.boolean(name))
      reasoning.thinking.say(reader, name, *value);
  }
  read_effort(reader, reasoning);
}

void read_reasoning(FieldReader& body, const ChatTemplate* chat_template,
                    text::ChatOptions& options) {
  Reasoning reasoning;
  read_thinking(body, reasoning);
  if (const std::optional<bool> value = body.boolean("enable_thinking"))
    reasoning.thinking.say(body, "enable_thinking", *value);
  read_effort(body, reasoning);
  read_template_fields(body, reasoning);
  // What a template would ignore was not what the client wanted.
  if (reasoning.thinking.get() && !can_choose_thinking(chat_template)) {
    body.wrong(reasoning.thinking.by(),
               fmt::format("the template {} leaves that to the model", name_of(chat_template)),
               "unsupported_value");
  }
  if (reasoning.effort.get() && !has_directives(chat_template)) {
    body.wrong(reasoning.effort.by(),
               fmt::format("the template {} has no levels of effort", name_of(chat_template)),
               "unsupported_value");
  }
  options.thinking = reasoning.thinking.get();
  options.effort = reasoning.effort.get();
}

void read_tool_choice(FieldReader& body, const ChatTemplate* chat_template, ChatRequest& request) {
  const JsonValue* choice = body.find("tool_choice");
  if (choice == nullptr) return;
  const std::string* word = choice->as_string();
  if (word == nullptr && choice->as_object() == nullptr) {
    body.expected("tool_choice", "\"auto\" or \"none\"");
  } else if (word == nullptr) {
    body.wrong("tool_choice", "the model cannot be made to call one function; send \"auto\"",
               "unsupported_value");
  } else if (*word == "none") {
    if (has_directives(chat_template)) {
      if (!request.conversation.tools.empty()) request.options.tool_choice = *word;
    } else {
      request.conversation.tools.clear();
    }
  } else if (*word == "required" && has_directives(chat_template)) {
    if (request.conversation.tools.empty()) body.wrong("tool_choice", "there are no tools to call");
    request.options.tool_choice = *word;
  } else if (*word == "required") {
    body.wrong("tool_choice",
               fmt::format("the template {} cannot tell the model that it must call a tool; send "
                           "\"auto\"",
                           name_of(chat_template)),
               "unsupported_value");
  } else if (*word != "auto") {
    body.expected("tool_choice", "\"auto\" or \"none\"");
  }
}

// Tools that a message declares are printed by K3's template alone.
void check_tools_of_messages(FieldReader& body, const ChatTemplate* chat_template,
                             const text::Conversation& conversation) {
  if (has_directives(chat_template)) return;
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    if (conversation.messages[i].tools.empty()) continue;
    body.wrong(fmt::format("messages[{}].tools", i),
               fmt::format("the template {} has only the tools of the whole request",
                           name_of(chat_template)),
               "unsupported_value");
    return;
  }
}

void read_response_format(FieldReader& body) {
  const JsonValue::Object* object = body.object("response_format");
  if (object == nullptr) return;
  FieldReader reader(*object, body.errors(), "response_format.");
  const std::string* type = reader.string("type");
  if (type == nullptr || *type != "text") {
    reader.wrong("type",
                 fmt::format("expected \"text\", found {}; output is not constrained",
                             type == nullptr ? "none" : describe(*reader.find("type"))),
                 "unsupported_value");
    return;
  }
  const std::array<std::string, 1> known = {"type"};
  reader.only(known);
}

std::optional<uint32_t> read_logprobs(FieldReader& body) {
  const bool logprobs = body.boolean("logprobs").value_or(false);
  const auto top =
      static_cast<uint32_t>(body.integer("top_logprobs", 0, limits::kTopLogprobs).value_or(0));
  if (top > 0 && !logprobs) body.wrong("top_logprobs", "is only for \"logprobs\": true");
  return logprobs ? std::optional(top) : std::nullopt;
}

}  // namespace

ApiResult<ChatRequest> parse_chat_request(std::string_view text, const ApiDefaults& defaults) {
  const ApiResult<JsonValue> json = parse_body(text);
  if (!json) return std::unexpected(json.error());
  if (const auto error = check_fields(*json->as_object(), Endpoint::Chat))
    return std::unexpected(*error);
  FirstError errors;
  FieldReader body(*json->as_object(), errors);
  ChatRequest request;
  read_model(body, defaults.model_id);
  request.conversation = read_conversation(body);
  check_tools_of_messages(body, defaults.chat_template, request.conversation);
  request.max_tokens = read_max_tokens(body, 1);
  read_generation_fields(body, defaults, request);
  request.logprobs = read_logprobs(body);
  read_reasoning(body, defaults.chat_template, request.options);
  read_tool_choice(body, defaults.chat_template, request);
  read_response_format(body);
  if (errors.get()) return std::unexpected(*errors.get());
  return request;
}

}  // namespace deltafin::serve
