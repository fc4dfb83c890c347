// The templates of Kimi K2: K2-Instruct (2508, 0905) and K2-Thinking.
#pragma once

#include <vector>

#include "base/result.h"
#include "text/chat/chat_options.h"
#include "text/chat/conversation.h"
#include "text/chat/segments.h"

namespace deltafin::text {

//   turn       <|im_user|> name or role <|im_middle|> body <|im_end|>
//
// with <|im_assistant|> and, for all others, <|im_system|>. A conversation that does not begin with
// a system message gets a default one.
//
// Errors: Usage, naming message and field: a call without arguments.
Result<std::vector<Segment>> render_kimi_k2_instruct(const Conversation& conversation,
                                                     const ChatOptions& options);
// Writes reasoning only after the last answer without calls, so within the present chain of calls.
Result<std::vector<Segment>> render_kimi_k2_thinking(const Conversation& conversation,
                                                     const ChatOptions& options);

}  // namespace deltafin::text
