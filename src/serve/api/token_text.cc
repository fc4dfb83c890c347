#include "serve/api/token_text.h"

#include <fmt/format.h>

#include "text/utf8.h"

namespace deltafin::serve {

std::string escape_bytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      text += "\\\\";
    } else if (byte >= 0x20 && byte < 0x7F) {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", byte);
    }
  }
  return text;
}

std::string completion_token(std::string_view bytes) {
  return text::find_ill_formed(bytes) ? "bytes:" + escape_bytes(bytes) : std::string(bytes);
}

std::string chat_token(std::string_view bytes) {
  return text::find_ill_formed(bytes) ? escape_bytes(bytes) : std::string(bytes);
}

}  // namespace deltafin::serve
