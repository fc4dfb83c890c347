// The template of Qwen3.
#pragma once

#include <vector>

#include "base/result.h"
#include "text/chat/chat_options.h"
#include "text/chat/conversation.h"
#include "text/chat/segments.h"

namespace deltafin::text {

//   turn       <|im_start|>role \n body <|im_end|> \n
//
// Reasoning is written after the last query of a user only. Published tokenizers encode the whole
// as one string, so text between two control tokens is one segment.
//
// Content in parts is put together first; the published template writes nothing in its place.
//
// Errors: Usage, naming message and field: no messages at all, a call without arguments, an image.
Result<std::vector<Segment>> render_qwen3(const Conversation& conversation,
                                          const ChatOptions& options);

}  // namespace deltafin::text
