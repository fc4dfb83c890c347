#include "text/byte_alphabet.h"

#include <gtest/gtest.h>

#include <string>

#include "text/test_text.h"

namespace deltafin::text {
namespace {

std::string bytes_of(std::string_view letters) {
  std::string bytes;
  EXPECT_TRUE(append_bytes_of_letters(letters, bytes)) << letters;
  return bytes;
}

TEST(ByteAlphabet, BytesThatLatin1ShowsAreTheirOwnLetters) {
  EXPECT_EQ(bytes_of("!Az~"), "!Az~");
  EXPECT_EQ(bytes_of("¡¬®ÿ"), "\xA1\xAC\xAE\xFF");
}

TEST(ByteAlphabet, AllOthersComeBehindLatin1InTheirOrder) {
  EXPECT_EQ(bytes_of("Ā"), std::string(1, '\0'));
  EXPECT_EQ(bytes_of("ĊčĠġ"), "\n\r \x7F");
  EXPECT_EQ(bytes_of("łŃ"), "\xA0\xAD");
}

TEST(ByteAlphabet, Has256LettersOneForEachByte) {
  std::string all;
  for (char32_t letter = 0; letter < 0x400; ++letter) {
    std::string text;
    append_utf8(letter, text);
    std::string bytes;
    if (append_bytes_of_letters(text, bytes)) all += bytes;
  }
  ASSERT_EQ(all.size(), 256u);
  std::string found(256, '\0');
  for (const char byte : all) ++found[static_cast<uint8_t>(byte)];
  EXPECT_EQ(found, std::string(256, '\1'));
}

TEST(ByteAlphabet, AnyOtherCharacterIsNoLetter) {
  for (const char* text : {" ", "a b", "\n", "\x7F", "\u00A0", "\u00AD", "\u0144", "中", "🙂"}) {
    std::string bytes;
    EXPECT_FALSE(append_bytes_of_letters(text, bytes)) << text;
  }
}

TEST(ByteAlphabet, AppendsToWhatIsThere) {
  std::string bytes = "x";
  EXPECT_TRUE(append_bytes_of_letters("Ġa", bytes));
  EXPECT_TRUE(append_bytes_of_letters("", bytes));
  EXPECT_EQ(bytes, "x a");
}

}  // namespace
}  // namespace deltafin::text
