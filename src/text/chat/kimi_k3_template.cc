#include "text/chat/kimi_k3_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "text/chat/python_text.h"

namespace deltafin::text {

namespace {

constexpr std::string_view kOpen = "<|open|>", kClose = "<|close|>", kSep = "<|sep|>";
constexpr std::string_view kEndOfMessage = "<|end_of_msg|>";
constexpr std::string_view kImagePlaceholder = "<|kimi_image_placeholder|>";

using Attributes = std::vector<std::pair<std::string_view, std::string>>;

std::string escape_attribute(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string_view type_name(const JsonValue& value) {
  constexpr std::string_view kTypes[] = {"null", "boolean", "number", "string", "array", "object"};
  return kTypes[value.value.index()];
}

struct ToolResult {
  size_t message_index;
  const ToolCall* call;  // null: not known
};

class Renderer {
 public:
  Renderer(const Conversation& conversation, const ChatOptions& options)
      : conversation_(conversation),
        options_(options),
        thinking_(options.thinking.value_or(true)) {}

  Result<std::vector<Segment>> render() {
    if (!conversation_.tools.empty()) {
      directive("tool-declare",
                "# Tools\nHere are the available tools, described in JSONSchema.\n\n" +
                    fenced_json({conversation_.tools}));
    }
    TRY_STATUS(thinking_effort());
    for (size_t i = 0; i < messages().size();) {
      if (messages()[i].role == Role::Tool) {
        TRY(i, tool_results(i));
      } else {
        TRY_STATUS(message(i));
        ++i;
      }
    }
    tool_choice();
    TRY_STATUS(response_format());
    if (options_.add_generation_prompt) {
      open("message", {{"role", "assistant"}});
      open(thinking_ ? "think" : "response", {});
    }
    if (image_count_ < options_.image_prompts.size()) return wrong_image_count();
    return segments_.take();
  }

 private:
  const std::vector<Message>& messages() const { return conversation_.messages; }

  void open(std::string_view tag, const Attributes& attributes) {
    segments_.control(kOpen).text(tag);
    for (const auto& [key, value] : attributes) {
      segments_.text(fmt::format(" {}", key)).text("=\"").text(escape_attribute(value)).text("\"");
    }
    segments_.control(kSep);
  }

  void close(std::string_view tag) { segments_.control(kClose).text(tag).control(kSep); }

  void end_message() {
    close("message");
    segments_.control(kEndOfMessage);
  }

  void directive(std::string_view type, std::string_view text) {
    open("message", {{"role", "system"}, {"type", std::string(type)}});
    segments_.text(text);
    end_message();
  }

  static std::string fenced_json(const JsonValue& value) {
    return "```json\n" + dump_json(value, JsonSpacing::Compact, JsonKeys::Sorted) + "\n```";
  }

  Status thinking_effort() {
    const std::string effort = options_.effort.value_or("max");
    if (!thinking_ || effort.empty()) return {};
    if (effort != "low" && effort != "high" && effort != "max") {
      return fail(ErrorCode::Usage,
                  fmt::format("effort: expected low, high or max, found \"{}\"", effort));
    }
    directive(
        "thinking-effort",
        "`thinking_effort` guides on how much to think in your thinking channel (not including "
        "the response channel), supported values include `low`, `medium`, `high`, and "
        "`max`.\nNow the system is invoked with `thinking_effort=" +
            effort + "`.");
    return {};
  }

  void tool_choice() {
    if (options_.tool_choice == "required") {
      directive(
          "tool-choice",
          "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next "
          "message.");
    } else if (options_.tool_choice == "none") {
      directive(
          "tool-choice",
          "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the "
          "next message.");
    }
  }

  Status response_format() {
    const JsonValue* type = options_.response_format.find("type");
    const std::string* name = type != nullptr ? type->as_string() : nullptr;
    if (name == nullptr || (*name != "json_object" && *name != "json_schema")) return {};
    std::string text = fmt::format(
        "The system is invoked with `response_format={}`.\nYour response must be raw JSON data "
        "without markdown code blocks (```json) or any additional formatting.",
        *name);
    if (*name == "json_schema") {
      const JsonValue* object = options_.response_format.find("json_schema");
      const JsonValue* schema = object != nullptr ? object->find("schema") : nullptr;
      if (schema == nullptr) {
        return fail(ErrorCode::Usage, "response_format.json_schema.schema: expected a schema");
      }
      text += "\nThe JSON data must match the following schema:\n" + fenced_json(*schema);
    }
    directive("response-format", text);
    return {};
  }

  // Every message but a tool's result.
  Status message(size_t index) {
    const Message& message = messages()[index];
    if (message.role == Role::System && !message.tools.empty()) {
      directive("tool-declare",
                "## New Tools Available\nThe system dynamically extends the toolset via "
                "lazy-loading.\nYou have access to all existing and extended tools.\nHere are the "
                "specs for the extended tools.\n\n" +
                    fenced_json({message.tools}));
      return {};
    }
    constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};
    Attributes attributes = {{"role", std::string(kRoles[static_cast<size_t>(message.role)])}};
    if (!message.name.empty()) attributes.emplace_back("name", message.name);
    open("message", attributes);
    if (message.role == Role::Assistant) {
      TRY_STATUS(assistant_body(index));
      calls_ = &message.tool_calls;
      result_count_ = 0;
    } else {
      TRY_STATUS(content(message.content));
    }
    end_message();
    return {};
  }

  Status assistant_body(size_t index) {
    const Message& message = messages()[index];
    if (thinking_) {
      open("think", {});
      const bool has_content = message.reasoning_content && !message.reasoning_content->empty();
      const std::string reasoning =
          has_content ? *message.reasoning_content : message.reasoning.value_or("");
      if (!is_blank(reasoning)) TRY_STATUS(body(reasoning));
      close("think");
    }
    open("response", {});
    TRY_STATUS(content(message.content));
    close("response");
    if (message.tool_calls.empty()) return {};
    open("tools", {});
    for (size_t i = 0; i < message.tool_calls.size(); ++i) {
      TRY_STATUS(call(message.tool_calls[i], i,
                      fmt::format("messages[{}].tool_calls[{}].function.arguments", index, i)));
    }
    close("tools");
    return {};
  }

  Status call(const ToolCall& call, size_t index, const std::string& path) {
    open("call", {{"tool", call.name}, {"index", std::to_string(index + 1)}});
    if (call.arguments && !call.arguments->is_null()) {
      if (const std::string* string = call.arguments->as_string()) {
        TRY_STATUS(string_arguments(*string, path));
      } else {
        TRY_STATUS(arguments(*call.arguments, path));
      }
    }
    close("call");
    return {};
  }

  // OpenAI's form. What is no JSON goes to the model as it came, so that it sees its own mistake.
  Status string_arguments(const std::string& string, const std::string& path) {
    if (is_blank(string)) return {};
    const Result<JsonValue> parsed = parse_json(string, JsonDialect::Python);
    if (parsed) return arguments(*parsed, path);
    open("json", {{"type", "object"}});
    TRY_STATUS(body(string));
    close("json");
    return {};
  }

  Status arguments(const JsonValue& value, const std::string& path) {
    const JsonValue::Object* object = value.as_object();
    if (object == nullptr) {
      return fail(ErrorCode::Usage,
                  fmt::format("{}: expected an object, found {}", path, kind_of(value)));
    }
    for (const JsonMember& member : *object) {
      open("argument", {{"key", member.key}, {"type", std::string(type_name(member.value))}});
      const std::string* string = member.value.as_string();
      TRY_STATUS(body(string != nullptr
                          ? *string
                          : dump_json(member.value, JsonSpacing::Spaced, JsonKeys::AsGiven)));
      close("argument");
    }
    return {};
  }

  Status content(const Content& content) {
    if (const std::string* string = std::get_if<std::string>(&content)) return body(*string);
    if (const auto* parts = std::get_if<std::vector<ContentPart>>(&content)) {
      for (const ContentPart& part : *parts) {
        if (part.kind == ContentPart::Kind::Text) {
          TRY_STATUS(body(part.text));
        } else if (options_.image_prompts.empty()) {
          segments_.control(kImagePlaceholder);
        } else {
          TRY_STATUS(next_image());
        }
      }
    }
    return {};
  }

  // With image prompts the placeholder stands for an image wherever it is spelled: that is how the
  // published code lets a client place images itself.
  Status body(std::string_view text) {
    if (options_.image_prompts.empty()) {
      segments_.text(text);
      return {};
    }
    for (size_t at; (at = text.find(kImagePlaceholder)) != std::string_view::npos;) {
      segments_.text(text.substr(0, at));
      TRY_STATUS(next_image());
      text.remove_prefix(at + kImagePlaceholder.size());
    }
    segments_.text(text);
    return {};
  }

  Status next_image() {
    if (image_count_ == options_.image_prompts.size()) return wrong_image_count();
    segments_.control(options_.image_prompts[image_count_++]);
    return {};
  }

  std::unexpected<Error> wrong_image_count() const {
    return fail(
        ErrorCode::Usage,
        fmt::format(
            "messages: {} image prompts for {} images", options_.image_prompts.size(),
            image_count_ < options_.image_prompts.size() ? std::to_string(image_count_) : "more"));
  }

  // A run of results, from `begin` on; returns where it ends.
  Result<size_t> tool_results(size_t begin) {
    size_t end = begin;
    while (end < messages().size() && messages()[end].role == Role::Tool) ++end;
    for (const ToolResult& result : in_order_of_calls(begin, end)) {
      const Message& message = messages()[result.message_index];
      TRY(const std::string tool, tool_of(result));
      open("message",
           {{"role", "tool"}, {"tool", tool}, {"index", std::to_string(++result_count_)}});
      TRY_STATUS(content(message.content));
      end_message();
    }
    return end;
  }

  // By the calls they answer, if every one of them answers a call of the last assistant message;
  // otherwise as they came, and no call is known.
  std::vector<ToolResult> in_order_of_calls(size_t begin, size_t end) const {
    std::unordered_map<std::string_view, const ToolCall*> calls;
    if (calls_ != nullptr) {
      for (const ToolCall& call : *calls_) {
        if (!call.id.empty()) calls.try_emplace(call.id, &call);
      }
    }
    std::vector<ToolResult> matched, unmatched;
    for (size_t i = begin; i < end; ++i) {
      unmatched.push_back({i, nullptr});
      const auto found = calls.find(messages()[i].tool_call_id);
      if (found != calls.end()) matched.push_back({i, found->second});
    }
    if (matched.size() < unmatched.size()) return unmatched;
    std::sort(matched.begin(), matched.end(), [](const ToolResult& a, const ToolResult& b) {
      return std::pair(a.call, a.message_index) < std::pair(b.call, b.message_index);
    });
    return matched;
  }

  Result<std::string> tool_of(const ToolResult& result) const {
    if (result.call != nullptr) return result.call->name;
    const Message& message = messages()[result.message_index];
    if (message.tool) return *message.tool;
    if (!message.name.empty()) return message.name;
    if (calls_ != nullptr && result_count_ < calls_->size()) return (*calls_)[result_count_].name;
    return fail(
        ErrorCode::Usage,
        fmt::format("messages[{}].name: expected the tool of this result, for it answers no "
                    "call",
                    result.message_index));
  }

  const Conversation& conversation_;
  const ChatOptions& options_;
  bool thinking_;
  SegmentList segments_{TextRuns::Apart};
  const std::vector<ToolCall>* calls_ = nullptr;  // of the last message of the assistant
  size_t result_count_ = 0;                       // since then
  size_t image_count_ = 0;
};

}  // namespace

Result<std::vector<Segment>> render_kimi_k3(const Conversation& conversation,
                                            const ChatOptions& options) {
  return Renderer(conversation, options).render();
}

}  // namespace deltafin::text
