#include "text/long_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/philox.h"
#include "text/test_text.h"
#include "text/utf8.h"

namespace deltafin::text {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<size_t> sizes(const std::vector<std::string_view>& parts) {
  std::vector<size_t> result;
  for (const std::string_view part : parts) result.push_back(part.size());
  return result;
}

TEST(LongText, AnEmptyTextHasNoParts) { EXPECT_THAT(cut_long_text("", LongTextCuts{}), IsEmpty()); }

TEST(LongText, RunsAreCutBehind25000CodePoints) {
  const LongTextCuts cuts;
  EXPECT_THAT(sizes(cut_long_text(std::string(25'000, 'a'), cuts)), ElementsAre(25'000));
  EXPECT_THAT(sizes(cut_long_text(std::string(25'001, 'a'), cuts)), ElementsAre(25'000, 1));
  EXPECT_THAT(sizes(cut_long_text(std::string(50'001, ' '), cuts)), ElementsAre(25'000, 25'000, 1));
  // A part may hold many runs; only one that is too long ends it.
  EXPECT_THAT(sizes(cut_long_text("b " + std::string(25'001, 'a') + " c", cuts)),
              ElementsAre(25'002, 3));
  EXPECT_THAT(sizes(cut_long_text(std::string(25'000, 'a') + ' ' + std::string(25'000, 'b'), cuts)),
              ElementsAre(50'001));
}

TEST(LongText, SlicesEndBehind400000CodePoints) {
  std::string words;
  while (words.size() < 800'000) words += "word ";
  EXPECT_THAT(sizes(cut_long_text(words, LongTextCuts{})), ElementsAre(400'000, 400'000));
  EXPECT_THAT(sizes(cut_long_text(words + "x", LongTextCuts{})), ElementsAre(400'000, 400'000, 1));
}

TEST(LongText, CountsCodePointsNotBytes) {
  std::string text;
  for (int i = 0; i < 25'001; ++i) text += "中";
  EXPECT_THAT(sizes(cut_long_text(text, LongTextCuts{})), ElementsAre(75'000, 3));
}

TEST(LongText, ASliceStartsANewRun) {
  // The second slice would go over the limit with what the first one ends with.
  EXPECT_THAT(sizes(cut_long_text("a bbb|bbbb|b", {.slice = 6, .run = 5})), ElementsAre(6, 5, 1));
}

TEST(LongText, WhitespaceIsPythons) {
  for (const char* space : {"\t", "\v", "\x1C", "\x1F", "\u0085", "\u00A0", "\u1680", "\u200A",
                            "\u2028", "\u202F", "\u205F", "\u3000"}) {
    const std::string text = std::string("a") + space + "b";
    EXPECT_EQ(cut_long_text(text, {.slice = 100, .run = 1}).size(), 1u) << text;
  }
  for (const char* other :
       {"\x08", "\x0E", "\x1B", "\u0084", "\u180E", "\u200B", "\u2060", "\uFEFF"}) {
    const std::string text = std::string("a") + other + "b";
    EXPECT_EQ(cut_long_text(text, {.slice = 100, .run = 1}).size(), 3u) << text;
  }
}

// The published wrapper, line by line.
std::vector<std::string> cut_as_published(std::string_view text, const LongTextCuts& cuts) {
  const auto is_space = [](char32_t c) {
    return std::u32string_view(
               U"\t\n\v\f\r\x1C\x1D\x1E\x1F \u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
               U"\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000")
               .find(c) != std::u32string_view::npos;
  };
  std::vector<char32_t> all;
  for (; !text.empty(); text.remove_prefix(next_utf8(text).size)) all.push_back(decode_utf8(text));

  std::vector<std::string> parts;
  const auto yield = [&](auto begin, auto end) {
    parts.emplace_back();
    for (auto c = begin; c != end; ++c) append_utf8(*c, parts.back());
  };
  for (size_t from = 0; from < all.size(); from += cuts.slice) {
    const auto slice = all.begin() + static_cast<ptrdiff_t>(from);
    const auto end = all.begin() + static_cast<ptrdiff_t>(std::min(from + cuts.slice, all.size()));
    size_t current_length = 0;
    bool current_is_space = is_space(*slice);
    auto slice_start = slice;
    for (auto c = slice; c != end; ++c) {
      if (current_is_space != is_space(*c)) {
        current_length = 1;
        current_is_space = is_space(*c);
      } else if (++current_length > cuts.run) {
        yield(slice_start, c);
        slice_start = c;
        current_length = 1;
      }
    }
    yield(slice_start, end);
  }
  return parts;
}

TEST(LongText, AgreesWithThePublishedWrapper) {
  Random random(test_seed());
  SCOPED_TRACE(test_seed());
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_text(random, random.below(80));
    const LongTextCuts cuts = {.slice = 1 + random.below(40), .run = 1 + random.below(6)};
    const std::vector<std::string_view> parts = cut_long_text(text, cuts);
    ASSERT_EQ(std::vector<std::string>(parts.begin(), parts.end()), cut_as_published(text, cuts))
        << text << " slice " << cuts.slice << " run " << cuts.run;
  }
}

}  // namespace
}  // namespace deltafin::text
