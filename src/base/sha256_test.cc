#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string_view>

namespace deltafin {
namespace {

void add(Sha256& sha, std::string_view text) { sha.add(std::as_bytes(std::span(text))); }

// FIPS 180-4, the example of one block.
TEST(Sha256, OfAbcIsThatOfTheStandard) {
  Sha256 sha;
  add(sha, "a");
  add(sha, "bc");
  EXPECT_EQ(to_hex(sha.digest()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, GoesOnAfterADigest) {
  Sha256 sha;
  add(sha, "a");
  const Sha256Digest early = sha.digest();
  add(sha, "bc");
  EXPECT_NE(sha.digest(), early);
  EXPECT_EQ(to_hex(sha.digest()).substr(0, 8), "ba7816bf");
}

}  // namespace
}  // namespace deltafin
