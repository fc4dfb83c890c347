#include "text/chat/qwen3_template.h"

#include <fmt/format.h>

#include "text/chat/python_text.h"
#include "text/chat/qwen_markup.h"

namespace deltafin::text {

namespace {

constexpr std::string_view kToolsBegin =
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are "
    "provided with function signatures within <tools></tools> XML tags:\n<tools>";
constexpr std::string_view kToolsEnd =
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments "
    "within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, "
    "\"arguments\": <args-json-object>}\n</tool_call>";

class Renderer {
 public:
  Renderer(const Conversation& conversation, const ChatOptions& options)
      : conversation_(conversation), options_(options) {}

  Result<std::vector<Segment>> render() {
    if (messages().empty()) return fail(ErrorCode::Usage, "messages: expected at least one");
    TRY_STATUS(refuse_media());
    system();
    last_query_ = last_query();
    for (size_t i = 0; i < messages().size(); ++i) TRY_STATUS(message(i));
    if (options_.add_generation_prompt) {
      begin_turn("assistant");
      if (options_.thinking == false)
        segments_.template_text("<think>\n\n</think>\n\n", kQwenControls);
    }
    return segments_.take();
  }

 private:
  const std::vector<Message>& messages() const { return conversation_.messages; }

  Status refuse_media() const {
    for (size_t i = 0; i < messages().size(); ++i) {
      const auto* parts = std::get_if<std::vector<ContentPart>>(&messages()[i].content);
      for (size_t j = 0; parts != nullptr && j < parts->size(); ++j) {
        if ((*parts)[j].kind == ContentPart::Kind::Text) continue;
        return fail(ErrorCode::Usage,
                    fmt::format("messages[{}].content[{}]: Qwen3 reads text only", i, j));
      }
    }
    return {};
  }

  void begin_turn(std::string_view role) {
    segments_.control("<|im_start|>").text(role).text("\n");
  }
  void end_turn() { segments_.control("<|im_end|>").text("\n"); }

  // The first turn: a system message in first place, and the tools.
  void system() {
    const bool has_system = messages()[0].role == Role::System;
    if (!has_system && conversation_.tools.empty()) return;
    begin_turn("system");
    if (has_system) segments_.text(text_of(messages()[0].content));
    if (!conversation_.tools.empty()) {
      if (has_system) segments_.text("\n\n");
      segments_.template_text(kToolsBegin, kQwenControls);
      for (const JsonValue& tool : conversation_.tools) {
        segments_.text("\n").text(dump_json(tool, JsonSpacing::Spaced, JsonKeys::AsGiven));
      }
      segments_.template_text(kToolsEnd, kQwenControls);
    }
    end_turn();
  }

  size_t last_query() const {
    for (size_t i = messages().size(); i > 0; --i) {
      const Message& message = messages()[i - 1];
      if (message.role == Role::User && !is_tool_response(text_of(message.content))) return i - 1;
    }
    return messages().size() - 1;
  }

  Status message(size_t index) {
    const Message& message = messages()[index];
    switch (message.role) {
      case Role::System:
        if (index == 0) break;  // in the first turn
        begin_turn("system");
        segments_.text(text_of(message.content));
        end_turn();
        break;
      case Role::User:
        begin_turn("user");
        segments_.text(text_of(message.content));
        end_turn();
        break;
      case Role::Assistant:
        return assistant(index);
      case Role::Tool:
        tool_result(index);
        break;
    }
    return {};
  }

  Status assistant(size_t index) {
    const Message& message = messages()[index];
    const auto [reasoning, content] = split_reasoning(message, text_of(message.content));
    begin_turn("assistant");
    const bool is_last = index + 1 == messages().size();
    if (index > last_query_ && (is_last || !reasoning.empty())) {
      segments_.control("<think>").text("\n").text(strip_newlines(reasoning)).text("\n");
      segments_.control("</think>").text("\n\n").text(strip_newlines_left(content));
    } else {
      segments_.text(content);
    }
    for (size_t i = 0; i < message.tool_calls.size(); ++i) {
      if (i > 0 || !content.empty()) segments_.text("\n");
      TRY_STATUS(call(message.tool_calls[i], index, i));
    }
    end_turn();
    return {};
  }

  Status call(const ToolCall& call, size_t message_index, size_t call_index) {
    if (!call.arguments) {
      return fail(ErrorCode::Usage,
                  fmt::format("messages[{}].tool_calls[{}].function.arguments: missing",
                              message_index, call_index));
    }
    const std::string* string = call.arguments->as_string();
    segments_.control("<tool_call>").text("\n{\"name\": \"").text(call.name);
    segments_.text("\", \"arguments\": ")
        .text(string != nullptr
                  ? *string
                  : dump_json(*call.arguments, JsonSpacing::Spaced, JsonKeys::AsGiven))
        .text("}\n")
        .control("</tool_call>");
    return {};
  }

  // Results in a row share a turn of the user.
  void tool_result(size_t index) {
    const auto is_tool = [&](size_t i) {
      return i < messages().size() && messages()[i].role == Role::Tool;
    };
    if (index == 0 || !is_tool(index - 1)) segments_.control("<|im_start|>").text("user");
    segments_.text("\n").control("<tool_response>").text("\n");
    segments_.text(text_of(messages()[index].content)).text("\n").control("</tool_response>");
    if (!is_tool(index + 1)) end_turn();
  }

  const Conversation& conversation_;
  const ChatOptions& options_;
  size_t last_query_ = 0;
  SegmentList segments_{TextRuns::Joined};
};

}  // namespace

Result<std::vector<Segment>> render_qwen3(const Conversation& conversation,
                                          const ChatOptions& options) {
  return Renderer(conversation, options).render();
}

}  // namespace deltafin::text
