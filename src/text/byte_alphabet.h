// GPT-2's alphabet: bytes as characters that can be seen, in which tokenizer.json spells tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace deltafin::text {

// The bytes that `letters`, well-formed UTF-8, stand for; nothing when one of them is none of the
// alphabet. Bytes that Latin-1 shows (0x21 to 0x7E, 0xA1 to 0xFF without the soft hyphen 0xAD) are
// the code points of their value, all others U+0100, U+0101, ... in their order.
std::optional<std::string> bytes_of_letters(std::string_view letters);

}  // namespace deltafin::text
