#include "base/suggestions.h"

#include <gtest/gtest.h>

#include <vector>

namespace deltafin {
namespace {

const std::vector<std::string> kFlags = {"--prompt", "--prompt-file", "--max-tokens", "--top-k",
                                         "--top-p",  "--threads",     "--ids"};

TEST(EditDistance, CountsSingleEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("run", "run"), 0u);
  EXPECT_EQ(edit_distance("", "run"), 3u);
  EXPECT_EQ(edit_distance("run", ""), 3u);
  EXPECT_EQ(edit_distance("rum", "run"), 1u);
  EXPECT_EQ(edit_distance("rn", "run"), 1u);
  EXPECT_EQ(edit_distance("ruun", "run"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(EditDistance, CountsTwoSwappedNeighboursOnce) {
  EXPECT_EQ(edit_distance("urn", "run"), 1u);
  EXPECT_EQ(edit_distance("inpsect", "inspect"), 1u);
}

TEST(Closest, FindsWhatATypoMeant) {
  EXPECT_EQ(closest("--promt", kFlags), "--prompt");
  EXPECT_EQ(closest("--thread", kFlags), "--threads");
  EXPECT_EQ(closest("--max_tokens", kFlags), "--max-tokens");
  EXPECT_EQ(closest("--MAX-TOKENS", kFlags), "--max-tokens");
  EXPECT_EQ(closest("-prompt", kFlags), "--prompt");
}

TEST(Closest, CompletesABeginningThatOnlyOneCandidateHas) {
  EXPECT_EQ(closest("--max", kFlags), "--max-tokens");
  EXPECT_EQ(closest("-m", kFlags), std::nullopt);     // too little
  EXPECT_EQ(closest("--top", kFlags), std::nullopt);  // two
  EXPECT_EQ(closest("--t", kFlags), std::nullopt);
}

TEST(Closest, IsSilentWhenNothingIsClose) {
  EXPECT_EQ(closest("--verbose", kFlags), std::nullopt);
  EXPECT_EQ(closest("--", kFlags), std::nullopt);
  EXPECT_EQ(closest("", kFlags), std::nullopt);
  EXPECT_EQ(closest("x", std::vector<std::string>{"a"}), std::nullopt);
}

}  // namespace
}  // namespace deltafin
