#include "text/nfc.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <memory>
#include <string>

#include "base/philox.h"
#include "text/test_text.h"
#include "text/utf8.h"

namespace deltafin::text {
namespace {

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

// By the library that ours takes its tables from, all at once.
std::string nfc_of_utf8proc(const std::string& text) {
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), std::ssize(text),
                   &result, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  EXPECT_GE(size, 0);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  return {reinterpret_cast<const char*>(result), static_cast<size_t>(size)};
}

TEST(Nfc, ComposesLettersAndMarks) {
  EXPECT_EQ(nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(nfc("x e\u0301 y"), "x \u00E9 y");
  EXPECT_EQ(nfc("\u00E9\u0323"), "\u1EB9\u0301");
  EXPECT_EQ(nfc("q\u0301"), "q\u0301");
}

TEST(Nfc, OrdersMarksByTheirClassAndKeepsTheOrderWithinOne) {
  EXPECT_EQ(nfc("a\u0315\u0300\u05AE\u0062"), "\u00E0\u05AE\u0315b");
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(nfc("q\u0301\u0307\u0323"), "q\u0323\u0301\u0307");
  EXPECT_EQ(nfc("q\u0307\u0301\u0323"), "q\u0323\u0307\u0301");
}

TEST(Nfc, ComposesHangul) {
  EXPECT_EQ(nfc("\u1112\u1161\u11AB\u1100\u116E\u11A8"), "\uD55C\uAD6D");
  EXPECT_EQ(nfc("\uD558\u11AB"), "\uD55C");
}

TEST(Nfc, ReplacesWhatHasAnotherCanonicalForm) {
  EXPECT_EQ(nfc("\u212B \u2126 \uF900"), "\u00C5 \u03A9 \u8C48");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");        // never composed
  EXPECT_EQ(nfc("\uFB01\u00B2"), "\uFB01\u00B2");  // compatibility forms stay
}

TEST(Nfc, MarksWithoutALetterStay) {
  EXPECT_EQ(nfc("\u0301"), "\u0301");
  EXPECT_EQ(nfc("\n\u0301\u0323"), "\n\u0323\u0301");
}

TEST(Nfc, TextThatIsSeenToBeNfcIsReturnedAsItIs) {
  std::string storage = "untouched";
  for (const std::string_view text : {"", "plain", "caf\u00E9 \u01C4 \u02FF"}) {
    EXPECT_EQ(to_nfc(text, storage).data(), text.data());
    EXPECT_EQ(storage, "untouched");
  }
}

TEST(Nfc, AgreesWithTheWholeTextAtOnce) {
  Random random(test_seed());
  SCOPED_TRACE(test_seed());
  constexpr std::u32string_view kUnits =
      U"aeoAq "
      U"\n\u00E9\u00C5\u0300\u0301\u0307\u0323\u0327\u0315\u0345\u05AE\u093C\u0915\u1100\u1161"
      U"\u11A8\uD558\uAC00\u212B\u0958\uFB1D\u1E9B中\U0001D15E\U00011099\U000110BA";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (uint64_t i = random.below(30); i > 0; --i)
      append_utf8(kUnits[random.below(kUnits.size())], text);
    ASSERT_EQ(nfc(text), nfc_of_utf8proc(text)) << text;
    ASSERT_EQ(nfc(nfc(text)), nfc(text)) << text;
    const std::string wild = random_text(random, random.below(50));
    ASSERT_EQ(nfc(wild), nfc_of_utf8proc(wild)) << wild;
  }
}

TEST(Nfc, AgreesForEveryCodePointBetweenLetterAndMark) {
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (is_surrogate(c)) continue;
    text = "e";
    append_utf8(c, text);
    text += "\u0301";
    ASSERT_EQ(nfc(text), nfc_of_utf8proc(text)) << std::hex << static_cast<uint32_t>(c);
  }
}

// Exchanging neighbours would take 10^12 steps.
TEST(Nfc, AMillionMarksAreNoTrouble) {
  std::string text = "a", above, below;
  for (int i = 0; i < 1'000'000; ++i) {
    text += "\u0301\u0323";
    above += "\u0301";
    if (i > 0) below += "\u0323";
  }
  // The first of those below goes to the letter.
  EXPECT_TRUE(nfc(text) == "\u1EA1" + below + above);
}

}  // namespace
}  // namespace deltafin::text
