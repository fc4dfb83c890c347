#include "text/chat/python_text.h"

#include <algorithm>

#include "text/utf8.h"

namespace deltafin::text {

namespace {

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

// The size of the whitespace that `text` begins with, 0 for none; it may end within a code point.
size_t leading_space(std::string_view text) {
  const Utf8Step step = next_utf8(text);
  return step.kind == Utf8Kind::Complete && is_space(decode_utf8(text)) ? step.size : 0;
}

// The offset of the code point that ends `text`.
size_t last_code_point(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

std::string_view strip(std::string_view text) {
  while (!text.empty()) {
    const size_t size = leading_space(text);
    if (size == 0) break;
    text.remove_prefix(size);
  }
  while (!text.empty()) {
    const size_t last = last_code_point(text);
    if (leading_space(text.substr(last)) == 0) break;
    text = text.substr(0, last);
  }
  return text;
}

bool is_blank(std::string_view text) { return strip(text).empty(); }

std::string_view strip_newlines_left(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

std::string_view strip_newlines_right(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

std::string_view strip_newlines(std::string_view text) {
  return strip_newlines_right(strip_newlines_left(text));
}

}  // namespace deltafin::text
