#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/philox.h"
#include "text/test_text.h"
#include "text/utf8.h"

namespace deltafin::text {
namespace {

std::string decode_whole(std::string_view bytes) {
  StreamDecoder decoder;
  std::string text = decoder.push(bytes);
  return text + decoder.finish();
}

struct Case {
  std::string name;
  std::string bytes;
  std::string text;  // R stands for U+FFFD
};

// The examples of the Unicode standard, chapter 3.9 (tables 3-8 to 3-11), and our own.
std::vector<Case> cases() {
  return {
      {"nothing", "", ""},
      {"well-formed text of all lengths", "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x99\x82z", "aé中🙂z"},
      {"overlong forms (table 3-8)", "\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "RRRRRRRRA"},
      {"surrogates (table 3-9)", "\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "RRRRRRRRA"},
      {"no code points (table 3-10)", "\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "RRRRRARRB"},
      {"truncated code points (table 3-11)", "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "RRRRA"},
      {"an overlong form of four bytes", "\xF0\x80\x80\x41", "RRRA"},
      {"the classic mix", "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", "aRRRbRcRRd"},
      {"continuation bytes alone", "\x80\xBF\x80", "RRR"},
      {"a lead byte before ASCII", "\xC3(", "R("},
      {"a lead byte before a code point", "\xE4\xB8\xC3\xA9", "Ré"},
      {"a code point cut off by the end", "ok\xF0\x9F\x99", "okR"},
      {"a lead byte at the end", "ok\xC3", "okR"},
      {"bytes that start nothing", "\xC1\xF5\xFE\xFF", "RRRR"},
      {"U+FFFD itself", "\xEF\xBF\xBD", "R"},
      {"the byte order mark, kept", "\xEF\xBB\xBFx", "\xEF\xBB\xBFx"},
      {"a zero byte", std::string("a\0b", 3), std::string("a\0b", 3)},
  };
}

std::string with_replacements(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == 'R' ? "\xEF\xBF\xBD" : std::string(1, c);
  return result;
}

TEST(StreamDecoder, ReplacesEachMaximalIllFormedPart) {
  for (const Case& c : cases())
    EXPECT_EQ(decode_whole(c.bytes), with_replacements(c.text)) << c.name;
}

TEST(StreamDecoder, TwoCutsAnywhereChangeNothing) {
  for (const Case& c : cases()) {
    const std::string whole = decode_whole(c.bytes);
    for (size_t first = 0; first <= c.bytes.size(); ++first) {
      for (size_t second = first; second <= c.bytes.size(); ++second) {
        StreamDecoder decoder;
        std::string text = decoder.push(c.bytes.substr(0, first));
        text += decoder.push(c.bytes.substr(first, second - first));
        text += decoder.push(c.bytes.substr(second));
        text += decoder.finish();
        ASSERT_EQ(text, whole) << c.name << ", cut at " << first << " and " << second;
      }
    }
  }
}

TEST(StreamDecoder, BytesOneByOneChangeNothing) {
  for (const Case& c : cases()) {
    StreamDecoder decoder;
    std::string text;
    for (const char byte : c.bytes) text += decoder.push(std::string_view(&byte, 1));
    EXPECT_EQ(text + decoder.finish(), decode_whole(c.bytes)) << c.name;
  }
}

TEST(StreamDecoder, NeverShowsHalfACodePointNorHoldsBackAWholeOne) {
  Random random(test_seed());
  SCOPED_TRACE(test_seed());
  for (int round = 0; round < 200; ++round) {
    const std::string text = random_text(random, 50);
    StreamDecoder decoder;
    size_t pushed = 0;
    size_t shown = 0;
    while (pushed < text.size()) {
      const size_t size = std::min<size_t>(1 + random.below(7), text.size() - pushed);
      const std::string out = decoder.push(text.substr(pushed, size));
      pushed += size;
      ASSERT_EQ(find_ill_formed(out), std::nullopt);
      ASSERT_EQ(out, text.substr(shown, out.size()));
      shown += out.size();
      // What is held back is the start of a code point, not one.
      ASSERT_LE(pushed - shown, 3u);
      if (pushed > shown) {
        ASSERT_EQ(next_utf8(std::string_view(text).substr(shown, pushed - shown)).kind,
                  Utf8Kind::Incomplete);
      }
    }
    ASSERT_EQ(decoder.finish(), "");
  }
}

TEST(StreamDecoder, IsAsNewAfterTheEnd) {
  StreamDecoder decoder;
  EXPECT_EQ(decoder.push("\xF0\x9F"), "");
  EXPECT_EQ(decoder.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_EQ(decoder.push("\x99"), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.push("x"), "x");
}

}  // namespace
}  // namespace deltafin::text
