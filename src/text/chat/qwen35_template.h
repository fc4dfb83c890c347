// The templates of Qwen3.5, which differ in one default only.
#pragma once

#include <vector>

#include "base/result.h"
#include "text/chat/chat_options.h"
#include "text/chat/conversation.h"
#include "text/chat/segments.h"

namespace deltafin::text {

// As Qwen3, but content is stripped, the last turns always have a think element, and calls are
// written as <function=NAME> with <parameter=KEY> in it.
//
// Arguments in OpenAI's form, a string with JSON in it, are parsed first; a blank one is no
// arguments.
//
// Errors: Usage, naming message and field: no messages, none with a query of a user, a system
// message that is not the first or has an image, arguments that are no object.
//
// The first reasons unless told not to (4B and larger); the second when told to (0.8B, 2B).
Result<std::vector<Segment>> render_qwen35(const Conversation& conversation,
                                           const ChatOptions& options);
Result<std::vector<Segment>> render_qwen35_small(const Conversation& conversation,
                                                 const ChatOptions& options);

}  // namespace deltafin::text
