// The output of Qwen3 and Qwen3.5.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "text/chat/channels.h"
#include "text/chat/tool_schemas.h"

namespace deltafin::text {

inline constexpr std::array<std::string_view, 6> kQwenMarkers = {
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>", "<|endoftext|>"};
// Qwen3.5 sometimes forgets <tool_call>. It is ordinary text, so only to be looked for where tools
// were declared.
inline constexpr std::string_view kQwenFunctionMarker = "<function=";

enum class QwenCalls : uint8_t { Json, Elements };

// </think> or a call ends the reasoning. The line feeds that the template writes around the markers
// are not part of what they enclose: reasoning has none at its ends, an answer none at its
// beginning or before a call. Text behind a call is dropped.
std::unique_ptr<ChannelGrammar> qwen_grammar(ChannelStart start, QwenCalls calls,
                                             ToolSchemas schemas);

}  // namespace deltafin::text
