#include "text/chat/qwen35_template.h"

#include <fmt/format.h>

#include "text/chat/python_text.h"
#include "text/chat/qwen_markup.h"

namespace deltafin::text {

namespace {

constexpr std::string_view kToolsBegin =
    "# Tools\n\nYou have access to the following functions:\n\n<tools>";
constexpr std::string_view kToolsEnd =
    "\n</tools>\n\nIf you choose to call a function ONLY reply in the following format with NO "
    "suffix:\n\n<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\n"
    "value_1\n</parameter>\n<parameter=example_parameter_2>\nThis is the value for the second "
    "parameter\nthat can span\nmultiple lines\n</parameter>\n</function>\n</tool_call>\n\n"
    "<IMPORTANT>\nReminder:\n- Function calls MUST follow the specified format: an inner "
    "<function=...></function> block must be nested within <tool_call></tool_call> XML tags\n- "
    "Required parameters MUST be specified\n- You may provide optional reasoning for your function "
    "call in natural language BEFORE the function call, but NOT after\n- If there is no function "
    "call available, answer the question like normal with your current knowledge and do not tell "
    "the user about function calls\n</IMPORTANT>";

// A message's content: its text and where in it media stand, so that stripping the ends leaves
// markers structure.
class Body {
 public:
  void text(std::string_view text) { segments_.text(text); }
  void media(std::string_view pad) {
    segments_.control("<|vision_start|>").control(pad).control("<|vision_end|>");
  }

  // Without whitespace at its ends.
  std::vector<Segment> stripped() {
    std::vector<Segment> segments = segments_.take();
    const auto is_text = [](const Segment& s) { return s.mode == SpecialTokens::AsText; };
    if (segments.size() == 1 && is_text(segments[0])) {
      segments[0].text = std::string(strip(segments[0].text));
      return segments;
    }
    // Media are not whitespace, so only one end of an outer text is an end of the whole.
    if (!segments.empty() && is_text(segments.front())) {
      const std::string kept = segments.front().text + "|";
      std::string_view begin = strip(kept);
      begin.remove_suffix(1);
      segments.front().text = std::string(begin);
    }
    if (!segments.empty() && is_text(segments.back())) {
      const std::string kept = "|" + segments.back().text;
      segments.back().text = std::string(strip(kept).substr(1));
    }
    return segments;
  }

 private:
  SegmentList segments_{TextRuns::Joined};
};

class Renderer {
 public:
  Renderer(const Conversation& conversation, const ChatOptions& options, bool thinks)
      : conversation_(conversation), options_(options), thinks_(thinks) {}

  Result<std::vector<Segment>> render() {
    if (messages().empty()) return fail(ErrorCode::Usage, "messages: expected at least one");
    for (size_t i = 0; i < messages().size(); ++i) bodies_.push_back(body_of(messages()[i]));
    TRY_STATUS(check_system());
    TRY(last_query_, last_query());
    system();
    for (size_t i = 0; i < messages().size(); ++i) TRY_STATUS(message(i));
    if (options_.add_generation_prompt) {
      begin_turn("assistant");
      segments_.template_text(thinks_ ? "<think>\n" : "<think>\n\n</think>\n\n", kQwenControls);
    }
    return segments_.take();
  }

 private:
  const std::vector<Message>& messages() const { return conversation_.messages; }

  std::vector<Segment> body_of(const Message& message) {
    Body body;
    const auto* parts = std::get_if<std::vector<ContentPart>>(&message.content);
    if (parts == nullptr) {
      body.text(text_of(message.content));
      return body.stripped();
    }
    for (const ContentPart& part : *parts) {
      if (part.kind == ContentPart::Kind::Text) {
        body.text(part.text);
        continue;
      }
      const bool is_image = part.kind == ContentPart::Kind::Image;
      size_t& count = is_image ? image_count_ : video_count_;
      ++count;
      if (options_.number_media) {
        body.text(fmt::format("{} {}: ", is_image ? "Picture" : "Video", count));
      }
      body.media(is_image ? "<|image_pad|>" : "<|video_pad|>");
    }
    return body.stripped();
  }

  Status check_system() const {
    for (size_t i = 0; i < messages().size(); ++i) {
      if (messages()[i].role != Role::System) continue;
      if (i > 0) {
        return fail(ErrorCode::Usage,
                    fmt::format("messages[{}].role: a system message must be the first", i));
      }
      for (const Segment& segment : bodies_[i]) {
        if (segment.mode == SpecialTokens::AsText) continue;
        return fail(ErrorCode::Usage, "messages[0].content: a system message has text only");
      }
    }
    return {};
  }

  Result<size_t> last_query() const {
    for (size_t i = messages().size(); i > 0; --i) {
      if (messages()[i - 1].role == Role::User && !is_tool_response(joined(bodies_[i - 1]))) {
        return i - 1;
      }
    }
    return fail(ErrorCode::Usage, "messages: expected a query of a user, found none");
  }

  void begin_turn(std::string_view role) {
    segments_.control("<|im_start|>").text(role).text("\n");
  }
  void end_turn() { segments_.control("<|im_end|>").text("\n"); }
  void append(const std::vector<Segment>& body) {
    for (const Segment& segment : body) {
      if (segment.mode == SpecialTokens::AsText) {
        segments_.text(segment.text);
      } else {
        segments_.control(segment.text);
      }
    }
  }

  // The first turn: the tools, and a system message in first place.
  void system() {
    const bool has_system = messages()[0].role == Role::System;
    if (!has_system && conversation_.tools.empty()) return;
    begin_turn("system");
    if (!conversation_.tools.empty()) {
      segments_.template_text(kToolsBegin, kQwenControls);
      for (const JsonValue& tool : conversation_.tools) {
        segments_.text("\n").text(dump_json(tool, JsonSpacing::Spaced, JsonKeys::AsGiven));
      }
      segments_.template_text(kToolsEnd, kQwenControls);
      if (has_system && !joined(bodies_[0]).empty()) segments_.text("\n\n");
    }
    if (has_system) append(bodies_[0]);
    end_turn();
  }

  Status message(size_t index) {
    switch (messages()[index].role) {
      case Role::System:
        break;  // in the first turn
      case Role::User:
        begin_turn("user");
        append(bodies_[index]);
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
    const auto [reasoning, content] = split_reasoning(message, joined(bodies_[index]));
    begin_turn("assistant");
    if (index > last_query_) {
      segments_.control("<think>").text("\n").text(strip(reasoning)).text("\n");
      segments_.control("</think>").text("\n\n");
    }
    segments_.text(content);
    for (size_t i = 0; i < message.tool_calls.size(); ++i) {
      if (i > 0) {
        segments_.text("\n");
      } else if (!is_blank(content)) {
        segments_.text("\n\n");
      }
      TRY_STATUS(call(message.tool_calls[i],
                      fmt::format("messages[{}].tool_calls[{}].function.arguments", index, i)));
    }
    end_turn();
    return {};
  }

  Status call(const ToolCall& call, const std::string& path) {
    TRY(const JsonValue arguments, arguments_of(call, path));
    segments_.control("<tool_call>").text(fmt::format("\n<function={}>\n", call.name));
    for (const JsonMember& member : *arguments.as_object()) {
      segments_.text(fmt::format("<parameter={}>\n", member.key));
      segments_.text(python_str(member.value)).text("\n</parameter>\n");
    }
    segments_.text("</function>\n").control("</tool_call>");
    return {};
  }

  static Result<JsonValue> arguments_of(const ToolCall& call, const std::string& path) {
    const std::string* string = call.arguments ? call.arguments->as_string() : nullptr;
    if (!call.arguments || (string != nullptr && is_blank(*string))) {
      return JsonValue{JsonValue::Object{}};
    }
    JsonValue arguments = *call.arguments;
    if (string != nullptr) {
      Result<JsonValue> parsed = parse_json(*string, JsonDialect::Python);
      if (!parsed) return std::unexpected(std::move(parsed.error()).within(path));
      arguments = *std::move(parsed);
    }
    if (arguments.as_object() != nullptr) return arguments;
    return fail(ErrorCode::Usage,
                fmt::format("{}: expected an object, found {}", path, kind_of(arguments)));
  }

  // Results in a row share a turn of the user, whose beginning the published template forgets where
  // the first message is a result.
  void tool_result(size_t index) {
    const auto is_tool = [&](size_t i) {
      return i < messages().size() && messages()[i].role == Role::Tool;
    };
    if (index > 0 && !is_tool(index - 1)) segments_.control("<|im_start|>").text("user");
    segments_.text("\n").control("<tool_response>").text("\n");
    append(bodies_[index]);
    segments_.text("\n").control("</tool_response>");
    if (!is_tool(index + 1)) end_turn();
  }

  const Conversation& conversation_;
  const ChatOptions& options_;
  bool thinks_;
  std::vector<std::vector<Segment>> bodies_;  // of each message
  size_t image_count_ = 0, video_count_ = 0;
  size_t last_query_ = 0;
  SegmentList segments_{TextRuns::Joined};
};

}  // namespace

Result<std::vector<Segment>> render_qwen35(const Conversation& conversation,
                                           const ChatOptions& options) {
  return Renderer(conversation, options, options.thinking.value_or(true)).render();
}

Result<std::vector<Segment>> render_qwen35_small(const Conversation& conversation,
                                                 const ChatOptions& options) {
  return Renderer(conversation, options, options.thinking.value_or(false)).render();
}

}  // namespace deltafin::text
