#include "text/long_text.h"

#include <algorithm>

#include "text/utf8.h"

namespace deltafin::text {

namespace {

// Python's str.isspace for one code point: bidirectional class WS, B or S, or category Zs. Unlike
// White_Space it has the separators U+001C to U+001F.
bool is_python_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

}  // namespace

std::vector<std::string_view> cut_long_text(std::string_view text, const LongTextCuts& cuts) {
  if (text.empty()) return {};
  // No more code points than bytes: most texts are too short for any cut.
  if (text.size() <= std::min(cuts.slice, cuts.run)) return {text};

  std::vector<std::string_view> parts;
  size_t part_begin = 0;
  size_t slice_length = 0;
  size_t run_length = 0;
  bool run_is_space = false;
  for (size_t at = 0; at < text.size(); at += next_utf8(text.substr(at)).size) {
    const bool is_space = is_python_space(decode_utf8(text.substr(at)));
    const bool slice_is_full = slice_length == cuts.slice;
    if (is_space != run_is_space) {
      run_length = 0;
      run_is_space = is_space;
    }
    if (slice_is_full || run_length == cuts.run) {
      parts.push_back(text.substr(part_begin, at - part_begin));
      part_begin = at;
      run_length = 0;
      if (slice_is_full) slice_length = 0;
    }
    ++slice_length;
    ++run_length;
  }
  parts.push_back(text.substr(part_begin));
  return parts;
}

}  // namespace deltafin::text
