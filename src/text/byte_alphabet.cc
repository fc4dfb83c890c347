#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace deltafin::text {

namespace {

constexpr size_t kHiddenByteCount = 68;
constexpr int16_t kNone = -1;

constexpr bool is_shown(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

// By code point.
constexpr std::array<int16_t, 256 + kHiddenByteCount> kBytes = [] {
  std::array<int16_t, 256 + kHiddenByteCount> bytes = {};
  bytes.fill(kNone);
  size_t next_hidden = 256;
  for (int16_t byte = 0; byte < 256; ++byte)
    bytes[is_shown(byte) ? static_cast<size_t>(byte) : next_hidden++] = byte;
  return bytes;
}();

}  // namespace

bool append_bytes_of_letters(std::string_view letters, std::string& bytes) {
  for (size_t at = 0; at < letters.size(); at += next_utf8(letters.substr(at)).size) {
    const char32_t letter = decode_utf8(letters.substr(at));
    const int16_t byte = letter < kBytes.size() ? kBytes[letter] : kNone;
    if (byte == kNone) return false;
    bytes += static_cast<char>(byte);
  }
  return true;
}

}  // namespace deltafin::text
