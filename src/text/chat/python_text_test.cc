#include "text/chat/python_text.h"

#include <gtest/gtest.h>

namespace deltafin::text {
namespace {

TEST(PythonText, StripTakesUnicodeWhitespaceAndTheSeparators) {
  EXPECT_EQ(strip("\u3000\x1C \t\r\n\u00A0a\u2003b\u2028\x1F\u0085"), "a\u2003b");
  EXPECT_EQ(strip("\u200Bx\uFEFF"), "\u200Bx\uFEFF");  // neither is whitespace
  EXPECT_EQ(strip("é"), "é");
  EXPECT_EQ(strip(""), "");
  EXPECT_TRUE(is_blank("\u00A0\n"));
  EXPECT_FALSE(is_blank(" . "));
}

TEST(PythonText, NewlinesAreLineFeedsOnly) {
  EXPECT_EQ(strip_newlines_left("\n\n\r a\n"), "\r a\n");
  EXPECT_EQ(strip_newlines_right("\na \n\n"), "\na ");
  EXPECT_EQ(strip_newlines("\n\na\n"), "a");
  EXPECT_EQ(strip_newlines("\n\n"), "");
}

}  // namespace
}  // namespace deltafin::text
