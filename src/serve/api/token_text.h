// The bytes of one token as a JSON string, also where they are no whole code points. Pure.
#pragma once

#include <string>
#include <string_view>

namespace deltafin::serve {

// "\xe2\x82": printable ASCII as it is, a backslash twice, any other byte in hexadecimal.
std::string escape_bytes(std::string_view bytes);

// As OpenAI's /v1/completions: the text, or "bytes:\xe2\x82" where the bytes are no whole code
// points.
std::string completion_token(std::string_view bytes);
// As OpenAI's chat: the text, or "\xe2\x82".
std::string chat_token(std::string_view bytes);

}  // namespace deltafin::serve
