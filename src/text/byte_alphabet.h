// GPT-2's alphabet: bytes as characters that can be seen, in which tokenizer.json spells tokens.
#pragma once

#include <string>
#include <string_view>

namespace deltafin::text {

// Appends the bytes that `letters`, well-formed UTF-8, stand for. Returns whether all of them are
// of the alphabet; what has been appended when one is not means nothing. Bytes that Latin-1 shows
// (0x21 to 0x7E, 0xA1 to 0xFF without the soft hyphen 0xAD) are the code points of their value, all
// others U+0100, U+0101, ... in their order.
bool append_bytes_of_letters(std::string_view letters, std::string& bytes);

}  // namespace deltafin::text
