#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "text/utf8.h"

namespace deltafin::text {

namespace {

// No code point below U+0300 is a mark or composes with what stands before it, so a text of these
// alone is NFC, and a text may be cut before each of them.
bool stands_alone(char32_t c) { return c < 0x300; }
// The lead byte of U+0300 and of everything above is at least this.
constexpr unsigned char kFirstLeadAbove = 0xCC;

bool is_seen_to_be_nfc(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) < kFirstLeadAbove; });
}

int combining_class(int32_t c) { return utf8proc_get_property(c)->combining_class; }

void append_decomposed(char32_t c, std::vector<int32_t>& points) {
  constexpr auto kCanonical = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  int32_t parts[8];  // the longest canonical decomposition has 4
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<int32_t>(c), parts,
                                                         std::size(parts), kCanonical, nullptr);
  CHECK(count > 0 && count <= std::ssize(parts));
  points.insert(points.end(), parts, parts + count);
}

// Sorts marks by their class, those of one class in the order they are in. utf8proc would exchange
// neighbours until they are, and a million marks would take it hours.
void sort_marks(std::span<int32_t> marks) {
  if (std::ranges::is_sorted(marks, {}, combining_class)) return;
  std::vector<std::tuple<int, size_t, int32_t>> places;
  for (size_t i = 0; i < marks.size(); ++i)
    places.emplace_back(combining_class(marks[i]), i, marks[i]);
  std::ranges::sort(places);
  for (size_t i = 0; i < marks.size(); ++i) marks[i] = std::get<2>(places[i]);
}

// Canonical ordering.
void sort_runs_of_marks(std::vector<int32_t>& points) {
  const auto is_mark = [](int32_t c) { return combining_class(c) != 0; };
  for (auto begin = std::ranges::find_if(points, is_mark); begin != points.end();) {
    const auto end = std::find_if_not(begin, points.end(), is_mark);
    sort_marks({begin, end});
    begin = std::find_if(end, points.end(), is_mark);
  }
}

// Of a text that nothing before or behind it composes with. `points` is working memory.
void append_nfc(std::string_view text, std::vector<int32_t>& points, std::string& into) {
  points.clear();
  for (size_t at = 0; at < text.size(); at += next_utf8(text.substr(at)).size)
    append_decomposed(decode_utf8(text.substr(at)), points);
  sort_runs_of_marks(points);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(points.data(), std::ssize(points),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  CHECK(count >= 0);
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t size = utf8proc_encode_char(points[static_cast<size_t>(i)], bytes);
    into.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  }
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage) {
  if (is_seen_to_be_nfc(text)) return text;
  storage.clear();
  storage.reserve(text.size() + text.size() / 8);
  std::vector<int32_t> points;
  // [begin, at) is one that stands alone, or the start of the text, and what may compose with it.
  size_t begin = 0;
  size_t count = 0;
  const auto flush = [&](size_t end) {
    const std::string_view part = text.substr(begin, end - begin);
    if (is_seen_to_be_nfc(part)) {
      storage += part;
    } else {
      append_nfc(part, points, storage);
    }
    begin = end;
    count = 0;
  };
  for (size_t at = 0; at < text.size(); at += next_utf8(text.substr(at)).size, ++count)
    if (stands_alone(decode_utf8(text.substr(at))) && count > 0) flush(at);
  flush(text.size());
  return storage;
}

}  // namespace deltafin::text
