// The rules of well-formed UTF-8 (Unicode 15, table 3-7), one code point at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deltafin::text {

enum class Utf8Kind : uint8_t {
  Complete,    // one code point
  Incomplete,  // the bytes end within a code point that is well-formed so far
  IllFormed,   // what no code point starts with
};

// What stands at the start of some bytes, and how many of them it takes: 1..4 when Complete; all
// that is there, 1..3, when Incomplete; when IllFormed the maximal part that U+FFFD replaces, 1..3:
// the longest start of a well-formed code point, or else one byte.
struct Utf8Step {
  Utf8Kind kind;
  uint8_t size;
};

// `bytes` must not be empty.
Utf8Step next_utf8(std::string_view bytes);

// The code point at the start of `bytes`, where next_utf8 says Complete.
char32_t decode_utf8(std::string_view bytes);

// Appends the bytes of a code point that is no surrogate.
void append_utf8(char32_t c, std::string& text);

// The offset of the first byte that belongs to no well-formed code point; nothing when all do.
std::optional<size_t> find_ill_formed(std::string_view text);

}  // namespace deltafin::text
