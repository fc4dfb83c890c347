#include "text/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "text/test_text.h"

namespace deltafin::text {
namespace {

TEST(Utf8, EveryCodePointIsCompleteAndDecodesToItself) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (is_surrogate(c)) continue;
    std::string bytes;
    append_utf8(c, bytes);
    const size_t size = bytes.size();
    bytes += "\x80x";  // what follows makes no difference
    const Utf8Step step = next_utf8(bytes);
    ASSERT_EQ(step.kind, Utf8Kind::Complete) << uint32_t{c};
    ASSERT_EQ(step.size, size) << uint32_t{c};
    ASSERT_EQ(decode_utf8(bytes), c);
  }
}

TEST(Utf8, EveryStartOfACodePointIsIncomplete) {
  for (char32_t c = 0x80; c < 0x110000; ++c) {
    if (is_surrogate(c)) continue;
    std::string bytes;
    append_utf8(c, bytes);
    for (size_t size = 1; size < bytes.size(); ++size) {
      const Utf8Step step = next_utf8(std::string_view(bytes).substr(0, size));
      ASSERT_EQ(step.kind, Utf8Kind::Incomplete) << uint32_t{c};
      ASSERT_EQ(step.size, size);
    }
  }
}

// Of all 2^32 strings of four bytes exactly the code points are complete: counting what each start
// contributes shows that no overlong form, surrogate or too large value slips in.
TEST(Utf8, NothingButTheCodePointsIsComplete) {
  uint64_t complete_count = 0;
  for (uint32_t first = 0; first < 256; ++first) {
    for (uint32_t second = 0; second < 256; ++second) {
      // The last two bytes matter only by whether they are continuation bytes.
      const char with_trails[] = {static_cast<char>(first), static_cast<char>(second), '\x80',
                                  '\xBF'};
      const Utf8Step step = next_utf8(std::string_view(with_trails, 4));
      if (step.kind != Utf8Kind::Complete) continue;
      if (step.size == 1) complete_count += second == 0 ? 1 : 0;
      if (step.size == 2) complete_count += 1;
      if (step.size == 3) complete_count += 64;
      if (step.size == 4) complete_count += 64 * 64;
    }
  }
  EXPECT_EQ(complete_count, 0x110000u - 0x800u);
}

TEST(Utf8, FindsTheFirstIllFormedByte) {
  EXPECT_EQ(find_ill_formed(""), std::nullopt);
  EXPECT_EQ(find_ill_formed("plain, \xC3\xA9, \xE4\xB8\xAD, \xF0\x9F\x99\x82"), std::nullopt);
  EXPECT_EQ(find_ill_formed("\xFF"), 0u);
  EXPECT_EQ(find_ill_formed("ab\xC3"), 2u);             // cut short
  EXPECT_EQ(find_ill_formed("a\xE4\xB8\xAD\x80"), 4u);  // a continuation byte of nothing
  EXPECT_EQ(find_ill_formed("a\xC0\x80"), 1u);          // overlong
  EXPECT_EQ(find_ill_formed("abc\xED\xA0\x80"), 3u);    // a surrogate
  EXPECT_EQ(find_ill_formed("\xF4\x90\x80\x80"), 0u);   // above U+10FFFF
  EXPECT_EQ(find_ill_formed("\xF0\x9F\x99\x82\xF0\x9F\x99x"), 4u);
}

}  // namespace
}  // namespace deltafin::text
