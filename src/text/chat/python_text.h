// Python's str.strip and its like, on which published templates are built.
#pragma once

#include <string_view>

namespace deltafin::text {

// Without whitespace at either end: Unicode's White_Space and U+001C to U+001F. `text` must be
// well-formed UTF-8.
std::string_view strip(std::string_view text);
// Whether nothing is left by strip().
bool is_blank(std::string_view text);

// Without line feeds (no other whitespace) at the beginning, the end, or both.
std::string_view strip_newlines_left(std::string_view text);
std::string_view strip_newlines_right(std::string_view text);
std::string_view strip_newlines(std::string_view text);

}  // namespace deltafin::text
