// `messages` and `tools` of a chat request, checked more strictly than templates need it. Pure.
#pragma once

#include "serve/api/field_reader.h"
#include "text/chat/conversation.h"

namespace deltafin::serve {

// OpenAI's role "developer" is "system" for every template here, and `reasoning`, as some servers
// call it, is `reasoning_content`. Other than that, and images and the like, which are refused,
// text::parse_conversation() decides.
text::Conversation read_conversation(FieldReader& body);

}  // namespace deltafin::serve
