// Byte-pair encoding by rank: the bytes of one piece of text to tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/rank_table.h"

namespace deltafin::text {

// A piece that is a token stays whole. Any other starts as single bytes, of which again and again
// the adjacent two are merged whose union has the lowest rank, the leftmost such two when several
// have it, until no union is a token.
//
// Takes O(n log n) steps for n bytes, each a look-up of at most the longest token's length. Not
// thread-safe: it keeps its working memory from piece to piece. The table must outlive it and hold
// every single byte.
class BytePairEncoder {
 public:
  explicit BytePairEncoder(const RankTable& ranks) : ranks_(&ranks) {}

  // Appends the tokens of `piece` (below 4 GiB; an empty one has none).
  void encode(std::string_view piece, std::vector<TokenId>& tokens);

 private:
  // A run of bytes that is a token, named by its first byte. The parts form a list in the order of
  // the text.
  struct Part {
    uint32_t end;       // where the next part starts
    uint32_t previous;  // where the part before starts
    Rank rank;
    Rank union_rank;  // of this part and the next together; kNone when that is no token
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void start_with_single_bytes(std::string_view piece);
  void merge_with_next(std::string_view piece, uint32_t part);
  // Looks up the union of `part` and the one behind it, and queues it when it is a token.
  void offer_union(std::string_view piece, uint32_t part);

  const RankTable* ranks_;
  std::vector<Part> parts_;  // by first byte; those swallowed by a merge have union_rank kNone
  // Rank of a union above, first byte below: the smallest is the next merge. Entries are not taken
  // out when a merge changes their part; they are recognised when they come up, for then the part's
  // union_rank is another.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue_;
};

}  // namespace deltafin::text
