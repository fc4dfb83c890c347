// The output of Kimi K2 and its relatives.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "text/chat/channels.h"

namespace deltafin::text {

inline constexpr std::array<std::string_view, 8> kKimiK2Markers = {"<think>",
                                                                   "</think>",
                                                                   "<|tool_calls_section_begin|>",
                                                                   "<|tool_calls_section_end|>",
                                                                   "<|tool_call_begin|>",
                                                                   "<|tool_call_argument_begin|>",
                                                                   "<|tool_call_end|>",
                                                                   "<|im_end|>"};

// <think> at the beginning opens the reasoning; </think> or a section of calls ends it. Whitespace
// alone in front of the section is no answer; text behind it is dropped. A call's header is its id,
// functions.NAME:N, which callers must give back with the result. Nothing else is trimmed.
std::unique_ptr<ChannelGrammar> kimi_k2_grammar(ChannelStart start);

}  // namespace deltafin::text
