// Kimi K3's XTML, for which no Jinja template was published: Moonshot's encoding_k3.py makes it.
#pragma once

#include <vector>

#include "base/result.h"
#include "text/chat/chat_options.h"
#include "text/chat/conversation.h"
#include "text/chat/segments.h"

namespace deltafin::text {

//   element    <|open|>tag key="value"...<|sep|> body <|close|>tag<|sep|>
//   message    the element `message`, then <|end_of_msg|>
//
// No other character stands between elements. Only the four control strings are control tokens.
//
// Errors: Usage, naming message and field: an effort other than low, high and max while thinking is
// on; arguments that are no object; a tool's result whose tool cannot be found; image prompts that
// are not as many as the images.
Result<std::vector<Segment>> render_kimi_k3(const Conversation& conversation,
                                            const ChatOptions& options);

}  // namespace deltafin::text
