// What the templates of Qwen3 and Qwen3.5 share.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/conversation.h"

namespace deltafin::text {

// Those of Qwen's added tokens that templates write.
inline constexpr std::array<std::string_view, 12> kQwenControls = {
    "<|im_start|>",  "<|im_end|>",    "<think>",          "</think>",
    "<tool_call>",   "</tool_call>",  "<tool_response>",  "</tool_response>",
    "<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"};

struct ReasonedContent {
  std::string reasoning;
  std::string content;
};

// The reasoning of a message of the assistant, and its content without it: reasoning_content, or
// else what stands before </think> in `content`.
ReasonedContent split_reasoning(const Message& message, std::string content);

// Whether `content` only wraps the result of a tool, so is no query of a user.
bool is_tool_response(std::string_view content);

}  // namespace deltafin::text
