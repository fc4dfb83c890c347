// What the tests of this room share: small vocabularies and random texts.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/philox.h"
#include "text/utf8.h"

namespace deltafin::text {

// Of every random test, which must show it when it fails. DELTAFIN_TEST_SEED replays or varies it.
inline uint64_t test_seed() {
  const char* given = std::getenv("DELTAFIN_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : 1;
}

inline std::string base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? kAlphabet[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

// All single bytes in order, then `more`.
inline std::vector<std::string> tokens_with(const std::vector<std::string>& more) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(std::string(1, static_cast<char>(byte)));
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

inline std::string rank_file_of(const std::vector<std::string>& tokens) {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i)
    text += base64(tokens[i]) + " " + std::to_string(i) + "\n";
  return text;
}

inline bool is_surrogate(char32_t c) { return c >= 0xD800 && c < 0xE000; }

// Half of the code points from what real text is made of, half from all there are.
inline std::string random_text(Random& random, size_t code_point_count) {
  constexpr std::u32string_view kUsual =
      U"aAeEsStTzZ  "
      U"\t\n\r.,'\"<|>[]{}_-0123456789éßǅʰªſКдاमू中国々〇、。ひカ한\u0301\u200d\u00a0\u3000🙂👩🚀";
  std::string text;
  for (size_t i = 0; i < code_point_count; ++i) {
    char32_t c = kUsual[random.below(kUsual.size())];
    if (random.below(2) == 0) {
      do c = static_cast<char32_t>(random.below(0x110000));
      while (is_surrogate(c));
    }
    append_utf8(c, text);
  }
  return text;
}

}  // namespace deltafin::text
