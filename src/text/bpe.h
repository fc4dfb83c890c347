// Byte-pair encoding: the bytes of one piece of text to tokens, for every kind of vocabulary.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/byte_pair_vocabulary.h"

namespace deltafin::text {

// A piece starts as single bytes, of which again and again the adjacent two are merged whose merge
// has the lowest rank, the leftmost such two when several have it, until none merge. Where the
// vocabulary keeps tokens whole, a piece that is a token is never taken apart.
//
// Takes O(n log n) steps for n bytes, each a look-up of two tokens or of at most the longest
// token's bytes. Not thread-safe: it keeps its working memory from piece to piece. The vocabulary
// must outlive it.
class BytePairEncoder {
 public:
  explicit BytePairEncoder(const BytePairVocabulary& vocabulary);

  // Appends the tokens of `piece` (below 4 GiB; an empty one has none).
  void encode(std::string_view piece, std::vector<TokenId>& tokens);

 private:
  // A run of bytes that is a token, named by its first byte. The parts form a list in the order of
  // the text.
  struct Part {
    uint32_t end;       // where the next part starts
    uint32_t previous;  // where the part before starts
    uint32_t token;
    Rank merge;  // of this part and the next; kNone when they do not merge
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void merge_bytes(std::string_view piece);
  void start_with_single_bytes(std::string_view piece);
  void merge_with_next(std::string_view piece, uint32_t part);
  // Looks up the merge of `part` and the one behind it, and queues it when there is one.
  void offer_merge(std::string_view piece, uint32_t part);

  const BytePairVocabulary* vocabulary_;
  // By token: whether its bytes are known to become it, so that pieces of them need no merging.
  std::vector<bool> known_whole_;
  std::vector<Part> parts_;  // by first byte; those swallowed by a merge have merge kNone
  // Rank of a merge above, first byte below: the smallest is the next merge. Entries are not taken
  // out when a merge changes their part; they are recognised when they come up, for then the part's
  // merge is another.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue_;
};

}  // namespace deltafin::text
