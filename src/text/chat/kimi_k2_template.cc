#include "text/chat/kimi_k2_template.h"

#include <fmt/format.h>

namespace deltafin::text {

namespace {

enum class Variant : uint8_t { Instruct, Thinking };

class Renderer {
 public:
  Renderer(const Conversation& conversation, const ChatOptions& options, Variant variant)
      : conversation_(conversation),
        options_(options),
        variant_(variant),
        history_end_(end_of_history(conversation.messages)) {}

  Result<std::vector<Segment>> render() {
    tools();
    // The older template writes its default within its loop over the messages.
    const std::vector<Message>& messages = conversation_.messages;
    const bool is_empty = messages.empty() && variant_ == Variant::Instruct;
    if (!is_empty && (messages.empty() || messages[0].role != Role::System)) {
      begin_turn(Role::System, "system");
      segments_.text("You are Kimi, an AI assistant created by Moonshot AI.");
      segments_.control("<|im_end|>");
    }
    for (size_t i = 0; i < messages.size(); ++i) TRY_STATUS(message(i));
    if (options_.add_generation_prompt) begin_turn(Role::Assistant, "assistant");
    return segments_.take();
  }

 private:
  // Behind the last message of the assistant that has no calls.
  static size_t end_of_history(const std::vector<Message>& messages) {
    for (size_t i = messages.size(); i > 0; --i) {
      if (messages[i - 1].role == Role::Assistant && messages[i - 1].tool_calls.empty()) return i;
    }
    return 0;
  }

  void begin_turn(Role role, std::string_view name) {
    segments_.control(role == Role::User        ? "<|im_user|>"
                      : role == Role::Assistant ? "<|im_assistant|>"
                                                : "<|im_system|>");
    segments_.text(name).control("<|im_middle|>");
  }

  void tools() {
    if (conversation_.tools.empty()) return;
    begin_turn(Role::System, "tool_declare");
    const bool is_instruct = variant_ == Variant::Instruct;
    if (is_instruct) segments_.text("\n  # Tools\n  ");
    segments_.text(dump_json({conversation_.tools},
                             is_instruct ? JsonSpacing::Spaced : JsonSpacing::Compact,
                             JsonKeys::Sorted));
    segments_.control("<|im_end|>");
  }

  Status message(size_t index) {
    const Message& message = conversation_.messages[index];
    constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};
    begin_turn(message.role, message.name.empty() ? kRoles[static_cast<size_t>(message.role)]
                                                  : std::string_view(message.name));
    if (message.role == Role::Assistant && variant_ == Variant::Thinking) {
      segments_.control("<think>");
      if (index >= history_end_) segments_.text(message.reasoning_content.value_or(""));
      segments_.control("</think>");
    }
    if (message.role == Role::Tool) {
      segments_.text(fmt::format("## Return of {}\n", message.tool_call_id));
      // The older template's own indentation.
      if (variant_ == Variant::Instruct) segments_.text("    ");
    }
    content(message.content);
    TRY_STATUS(calls(index));
    segments_.control("<|im_end|>");
    return {};
  }

  void content(const Content& content) {
    const auto* parts = std::get_if<std::vector<ContentPart>>(&content);
    if (parts == nullptr) {
      segments_.text(text_of(content));
      return;
    }
    for (const ContentPart& part : *parts) {
      if (part.kind == ContentPart::Kind::Text) {
        segments_.text(part.text);
      } else {
        // Not among the control tokens of K2's vocabulary.
        segments_.text("<|media_start|>image<|media_content|><|media_pad|><|media_end|>\n");
      }
    }
  }

  Status calls(size_t message_index) {
    const std::vector<ToolCall>& calls = conversation_.messages[message_index].tool_calls;
    if (calls.empty()) return {};
    segments_.control("<|tool_calls_section_begin|>");
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!calls[i].arguments) {
        return fail(ErrorCode::Usage,
                    fmt::format("messages[{}].tool_calls[{}].function.arguments: missing",
                                message_index, i));
      }
      const std::string* string = calls[i].arguments->as_string();
      segments_.control("<|tool_call_begin|>").text(calls[i].id);
      segments_.control("<|tool_call_argument_begin|>")
          .text(string != nullptr
                    ? *string
                    : dump_json(*calls[i].arguments, JsonSpacing::Spaced, JsonKeys::AsGiven))
          .control("<|tool_call_end|>");
    }
    segments_.control("<|tool_calls_section_end|>");
    return {};
  }

  const Conversation& conversation_;
  const ChatOptions& options_;
  Variant variant_;
  size_t history_end_;
  SegmentList segments_{TextRuns::Joined};
};

}  // namespace

Result<std::vector<Segment>> render_kimi_k2_instruct(const Conversation& conversation,
                                                     const ChatOptions& options) {
  return Renderer(conversation, options, Variant::Instruct).render();
}

Result<std::vector<Segment>> render_kimi_k2_thinking(const Conversation& conversation,
                                                     const ChatOptions& options) {
  return Renderer(conversation, options, Variant::Thinking).render();
}

}  // namespace deltafin::text
