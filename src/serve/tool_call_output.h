// A call of a tool, as a model wrote it, for a client.
#pragma once

#include <cstddef>

#include "serve/api/generation_response.h"
#include "text/chat/channels.h"

namespace deltafin::serve {

// `number`: how many calls the answer had before. The model's own id where its format has ids.
ToolCallOutput to_output(text::ParsedCall call, size_t number);

}  // namespace deltafin::serve
