#include "text/chat/qwen_markup.h"

#include "text/chat/python_text.h"

namespace deltafin::text {

ReasonedContent split_reasoning(const Message& message, std::string content) {
  constexpr std::string_view kBegin = "<think>", kEnd = "</think>";
  if (message.reasoning_content) return {*message.reasoning_content, std::move(content)};
  const size_t first_end = content.find(kEnd);
  if (first_end == std::string::npos) return {"", std::move(content)};
  std::string_view reasoning = std::string_view(content).substr(0, first_end);
  reasoning = strip_newlines_right(reasoning);
  const size_t last_begin = reasoning.rfind(kBegin);
  if (last_begin != std::string_view::npos) reasoning.remove_prefix(last_begin + kBegin.size());
  const std::string_view rest = std::string_view(content).substr(content.rfind(kEnd) + kEnd.size());
  return {std::string(strip_newlines_left(reasoning)), std::string(strip_newlines_left(rest))};
}

bool is_tool_response(std::string_view content) {
  return content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
}

}  // namespace deltafin::text
