#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "text/merge_list.h"
#include "text/test_text.h"

namespace deltafin::text {
namespace {

RankTable table_of(const std::vector<std::string>& tokens) {
  RankTable table(tokens.size(), std::accumulate(tokens.begin(), tokens.end(), size_t{0},
                                                 [](size_t sum, const std::string& token) {
                                                   return sum + token.size();
                                                 }));
  for (const std::string& token : tokens) EXPECT_EQ(table.add(token), std::nullopt);
  return table;
}

// The tokens of `piece` put side by side: "ab|c".
std::string side_by_side(const BytePairVocabulary& vocabulary, std::string_view piece) {
  BytePairEncoder encoder(vocabulary);
  std::vector<TokenId> ids;
  encoder.encode(piece, ids);
  std::string text;
  for (const TokenId id : ids) {
    if (!text.empty()) text += '|';
    text += vocabulary.tokens().bytes(static_cast<Rank>(id));
  }
  return text;
}

// By the rank file's rule.
std::string encode(const std::vector<std::string>& more, std::string_view piece) {
  const RankVocabulary vocabulary(table_of(tokens_with(more)));
  return side_by_side(vocabulary, piece);
}

// The definition, word by word: quadratic, and obviously right.
std::vector<TokenId> encode_plainly(const RankTable& table, std::string_view piece) {
  if (const std::optional<Rank> whole = table.find(piece)) return {static_cast<TokenId>(*whole)};
  std::vector<std::string> parts;
  for (const char byte : piece) parts.push_back(std::string(1, byte));
  for (;;) {
    std::optional<Rank> best;
    size_t best_index = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::optional<Rank> rank = table.find(parts[i] + parts[i + 1]);
      if (rank && (!best || *rank < *best)) {
        best = rank;
        best_index = i;
      }
    }
    if (!best) break;
    parts[best_index] += parts[best_index + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best_index) + 1);
  }
  std::vector<TokenId> ids;
  for (const std::string& part : parts) ids.push_back(static_cast<TokenId>(*table.find(part)));
  return ids;
}

TEST(BytePairEncoder, MergesTheLowestRankFirst) {
  EXPECT_EQ(encode({"bc", "ab"}, "abc"), "a|bc");
  EXPECT_EQ(encode({"ab", "bc"}, "abc"), "ab|c");
}

TEST(BytePairEncoder, MergesTheLeftmostOfEqualRanks) {
  EXPECT_EQ(encode({"aa"}, "aaa"), "aa|a");
  EXPECT_EQ(encode({"aa"}, "aaaaa"), "aa|aa|a");
  EXPECT_EQ(encode({"aba"}, "ababa"), "a|b|a|b|a");  // no two bytes make a token
  EXPECT_EQ(encode({"ab", "aba"}, "ababa"), "ab|aba");
}

TEST(BytePairEncoder, MergesWhatMergingMade) {
  EXPECT_EQ(encode({"ab", "cd", "abcd"}, "xabcdx"), "x|abcd|x");
  EXPECT_EQ(encode({"cd", "bcd", "abcd"}, "abcde"), "abcd|e");
}

TEST(BytePairEncoder, TakesAPieceThatIsATokenWholeEvenIfNoMergesLeadToIt) {
  EXPECT_EQ(encode({"abc"}, "abc"), "abc");
  EXPECT_EQ(encode({"abc"}, "abcd"), "a|b|c|d");
}

TEST(BytePairEncoder, AnEmptyPieceHasNoTokens) { EXPECT_EQ(encode({"ab"}, ""), ""); }

TEST(BytePairEncoder, AppendsToWhatIsThere) {
  const RankVocabulary vocabulary(table_of(tokens_with({"ab"})));
  BytePairEncoder encoder(vocabulary);
  std::vector<TokenId> ids = {7};
  encoder.encode("abc", ids);
  encoder.encode("ba", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{7, 256, 'c', 'b', 'a'}));
}

TEST(BytePairEncoder, AgreesWithThePlainDefinitionOnRandomVocabularies) {
  Random random(test_seed());
  SCOPED_TRACE(test_seed());
  for (int round = 0; round < 200; ++round) {
    // Few letters and many tokens, so that merges compete.
    const uint64_t letter_count = 1 + random.below(3);
    const auto letters = [&](uint64_t size) {
      std::string text;
      for (uint64_t i = 0; i < size; ++i)
        text += static_cast<char>('a' + static_cast<char>(random.below(letter_count)));
      return text;
    };
    std::set<std::string> distinct;
    for (int i = 0; i < 30; ++i) distinct.insert(letters(2 + random.below(4)));
    std::vector<std::string> more(distinct.begin(), distinct.end());
    for (size_t i = more.size(); i > 1; --i) std::swap(more[i - 1], more[random.below(i)]);

    const RankVocabulary vocabulary(table_of(tokens_with(more)));
    BytePairEncoder encoder(vocabulary);
    for (int i = 0; i < 20; ++i) {
      const std::string piece = letters(1 + random.below(60));
      std::vector<TokenId> ids;
      encoder.encode(piece, ids);
      ASSERT_EQ(ids, encode_plainly(vocabulary.tokens(), piece))
          << "round " << round << ": " << piece;
    }
  }
}

// A vocabulary of bytes and `merges`, in the order of their ranks; a token has the place of the
// first merge that makes it.
std::unique_ptr<MergeListVocabulary> merging(
    const std::vector<std::pair<std::string, std::string>>& merges,
    MergeListVocabulary::WholeTokens whole_tokens = MergeListVocabulary::WholeTokens::Merged) {
  std::vector<std::string> tokens = tokens_with({});
  for (const auto& [left, right] : merges)
    if (std::ranges::find(tokens, left + right) == tokens.end()) tokens.push_back(left + right);
  auto vocabulary =
      std::make_unique<MergeListVocabulary>(table_of(tokens), whole_tokens, merges.size());
  for (const auto& [left, right] : merges) {
    const RankTable& table = vocabulary->tokens();
    EXPECT_TRUE(vocabulary->add(*table.find(left), *table.find(right), *table.find(left + right)));
  }
  return vocabulary;
}

TEST(MergeList, OnlyWhatIsListedIsMerged) {
  EXPECT_EQ(side_by_side(*merging({{"a", "b"}, {"ab", "c"}}), "abc"), "abc");
  EXPECT_EQ(side_by_side(*merging({{"b", "c"}, {"a", "b"}, {"ab", "c"}}), "abc"), "a|bc");
  EXPECT_EQ(side_by_side(*merging({{"b", "c"}, {"a", "bc"}}), "abc"), "abc");
}

TEST(MergeList, ThePlaceInTheListIsThePriorityNotTheToken) {
  // "abc" is token 257 and made by the last merge.
  EXPECT_EQ(side_by_side(*merging({{"a", "b"}, {"ab", "c"}, {"c", "d"}}), "abcd"), "abc|d");
  EXPECT_EQ(side_by_side(*merging({{"a", "b"}, {"c", "d"}, {"ab", "c"}}), "abcd"), "ab|cd");
}

TEST(MergeList, ATokenThatMergingDoesNotLeadToIsKeptWholeOnlyWhereTheVocabularySaysSo) {
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"b", "c"}, {"a", "b"}, {"ab", "c"}};
  EXPECT_EQ(side_by_side(*merging(merges), "abc"), "a|bc");
  EXPECT_EQ(side_by_side(*merging(merges, MergeListVocabulary::WholeTokens::Kept), "abc"), "abc");
}

TEST(MergeList, APieceHasTheSameTokensEveryTime) {
  const auto vocabulary = merging({{"b", "c"}, {"a", "b"}, {"ab", "c"}, {"x", "y"}});
  BytePairEncoder encoder(*vocabulary);
  std::vector<TokenId> ids;
  for (int i = 0; i < 3; ++i)
    for (const char* piece : {"abc", "xy"}) encoder.encode(piece, ids);
  const std::vector<TokenId> once = {'a', 256, 259};
  EXPECT_EQ(ids.size(), 9u);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], once[i % 3]);
}

TEST(MergeList, APairIsListedOnce) {
  MergeListVocabulary vocabulary(table_of(tokens_with({"ab", "abb"})),
                                 MergeListVocabulary::WholeTokens::Merged, 3);
  EXPECT_TRUE(vocabulary.add('a', 'b', 256));
  EXPECT_FALSE(vocabulary.add('a', 'b', 256));
  EXPECT_TRUE(vocabulary.add(256, 'b', 257));
  EXPECT_EQ(vocabulary.merge_count(), 2u);
  EXPECT_EQ(vocabulary.find_merge(256, 'b', ""), 1u);
  EXPECT_EQ(vocabulary.find_merge('b', 'a', ""), std::nullopt);
  EXPECT_EQ(vocabulary.token_of_merge(1), 257u);
}

// The definition of merging by a list: quadratic, and obviously right.
std::string merged_plainly(const std::vector<std::pair<std::string, std::string>>& merges,
                           std::string_view piece) {
  std::vector<std::string> parts;
  for (const char byte : piece) parts.push_back(std::string(1, byte));
  for (;;) {
    size_t best_rank = merges.size(), best_index = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = std::ranges::find(merges, std::pair{parts[i], parts[i + 1]});
      const size_t rank = static_cast<size_t>(found - merges.begin());
      if (rank < best_rank) {
        best_rank = rank;
        best_index = i;
      }
    }
    if (best_rank == merges.size()) break;
    parts[best_index] += parts[best_index + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best_index) + 1);
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "|") + part;
  return text;
}

TEST(MergeList, AgreesWithThePlainDefinitionOnRandomLists) {
  Random random(test_seed());
  SCOPED_TRACE(test_seed());
  for (int round = 0; round < 200; ++round) {
    const uint64_t letter_count = 1 + random.below(3);
    std::vector<std::string> tokens;
    for (uint64_t i = 0; i < letter_count; ++i)
      tokens.push_back(std::string(1, static_cast<char>('a' + static_cast<char>(i))));
    std::vector<std::pair<std::string, std::string>> merges;
    for (int i = 0; i < 25; ++i) {
      const std::pair merge = {tokens[random.below(tokens.size())],
                               tokens[random.below(tokens.size())]};
      if (std::ranges::find(merges, merge) != merges.end() ||
          merge.first.size() + merge.second.size() > 12)
        continue;
      merges.push_back(merge);
      if (std::ranges::find(tokens, merge.first + merge.second) == tokens.end())
        tokens.push_back(merge.first + merge.second);
    }
    // Not in the order they were made: a part may have a later rank than the whole.
    for (size_t i = merges.size(); i > 1; --i) std::swap(merges[i - 1], merges[random.below(i)]);
    const auto vocabulary = merging(merges);
    for (int i = 0; i < 20; ++i) {
      std::string piece;
      for (uint64_t size = 1 + random.below(60); size > 0; --size)
        piece += static_cast<char>('a' + static_cast<char>(random.below(letter_count)));
      ASSERT_EQ(side_by_side(*vocabulary, piece), merged_plainly(merges, piece))
          << "round " << round << ": " << piece;
    }
  }
}

// A quadratic merge would need 10^12 steps here, and the test would not end.
TEST(BytePairEncoder, AMillionEqualBytesAreNoTrouble) {
  std::vector<std::string> powers;
  for (size_t size = 2; size <= 128; size *= 2) powers.push_back(std::string(size, 'a'));
  const RankVocabulary vocabulary(table_of(tokens_with(powers)));
  const RankTable& table = vocabulary.tokens();
  BytePairEncoder encoder(vocabulary);
  std::vector<TokenId> ids;
  encoder.encode(std::string(1'000'001, 'a'), ids);
  // 1,000,001 = 7812 * 128 + 64 + 1
  ASSERT_EQ(ids.size(), 7814u);
  EXPECT_EQ(std::ranges::count(ids, static_cast<TokenId>(*table.find(powers.back()))), 7812);
  EXPECT_EQ(ids[7812], static_cast<TokenId>(*table.find(std::string(64, 'a'))));
  EXPECT_EQ(ids[7813], TokenId{'a'});
}

}  // namespace
}  // namespace deltafin::text
