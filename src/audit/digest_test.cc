#include "audit/digest.h"

#include <gtest/gtest.h>

#include <vector>

namespace deltafin::audit {
namespace {

TEST(LogitsDigest, OfNothingIsTheHashOfTheEmptyString) {
  EXPECT_EQ(LogitsDigest().hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(LogitsDigest, IsTheHashOfTheConcatenatedBytes) {
  // "abcdefgh" as two little-endian floats, whatever their values: sha256("abcdefgh").
  LogitsDigest digest;
  float first = 0, second = 0;
  __builtin_memcpy(&first, "abcd", 4);
  __builtin_memcpy(&second, "efgh", 4);
  digest.add(std::vector{first});
  digest.add(std::vector{second});
  EXPECT_EQ(digest.hex(), "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab");
  EXPECT_EQ(digest.row_count(), 2u);
}

TEST(LogitsDigest, SeesTheSignOfZeroAndGoesOnAfterHex) {
  LogitsDigest positive, negative;
  positive.add(std::vector{0.0f});
  negative.add(std::vector{-0.0f});
  EXPECT_NE(positive.hex(), negative.hex());
  const std::string before = positive.hex();
  positive.add(std::vector{1.0f});
  EXPECT_NE(positive.hex(), before);
}

}  // namespace
}  // namespace deltafin::audit
