#include "text/utf8.h"

#include <algorithm>

#include "base/check.h"

namespace deltafin::text {

namespace {

// What a lead byte asks of the rest. Only the second byte has a range of its own: that is where
// overlong forms, surrogates and values above U+10FFFF are excluded.
struct Lead {
  uint8_t size;  // of the whole code point; 0 for a byte that starts none
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Step next_utf8(std::string_view bytes) {
  DCHECK(!bytes.empty());
  const Lead lead = lead_of(static_cast<uint8_t>(bytes[0]));
  if (lead.size <= 1) return {lead.size == 1 ? Utf8Kind::Complete : Utf8Kind::IllFormed, 1};
  const size_t there = std::min<size_t>(bytes.size(), lead.size);
  for (size_t i = 1; i < there; ++i) {
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8Kind::IllFormed, static_cast<uint8_t>(i)};
  }
  const Utf8Kind kind = there == lead.size ? Utf8Kind::Complete : Utf8Kind::Incomplete;
  return {kind, static_cast<uint8_t>(there)};
}

char32_t decode_utf8(std::string_view bytes) {
  const uint8_t lead = static_cast<uint8_t>(bytes[0]);
  const size_t size = lead_of(lead).size;
  DCHECK(size > 0 && size <= bytes.size());
  if (size == 1) return lead;
  // A lead of n bytes keeps 7 - n bits for the value.
  char32_t value = lead & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) value = value << 6 | (static_cast<uint8_t>(bytes[i]) & 0x3Fu);
  return value;
}

void append_utf8(char32_t c, std::string& text) {
  const auto trail = [&](unsigned shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    trail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    trail(6);
    trail(0);
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    trail(12);
    trail(6);
    trail(0);
  }
}

std::optional<size_t> find_ill_formed(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = next_utf8(text.substr(at));
    if (step.kind != Utf8Kind::Complete) return at;
    at += step.size;
  }
  return std::nullopt;
}

}  // namespace deltafin::text
