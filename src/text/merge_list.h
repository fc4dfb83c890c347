// The vocabulary of a tokenizer.json: tokens, and a list of which two become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/byte_pair_vocabulary.h"

namespace deltafin::text {

// Unlike the tokens of a rank file, two neighbours only become one if the list says so, and the
// place in the list is the priority. Filled by add().
class MergeListVocabulary final : public BytePairVocabulary {
 public:
  // What becomes of a piece that is a token: "ignore_merges" in the file.
  enum class WholeTokens : uint8_t { Kept, Merged };

  // Room for `merge_count` merges.
  MergeListVocabulary(RankTable tokens, WholeTokens whole_tokens, size_t merge_count);

  // Gives the merge of these two tokens into `token` the next priority. Returns whether it is new;
  // when it is not, nothing changes. There must be room.
  bool add(uint32_t left, uint32_t right, uint32_t token);
  size_t merge_count() const { return merged_.size(); }

  bool keeps_tokens_whole() const override { return whole_tokens_ == WholeTokens::Kept; }
  std::optional<Rank> find_merge(uint32_t left, uint32_t right,
                                 std::string_view both) const override;
  uint32_t token_of_merge(Rank rank) const override { return merged_[rank]; }

 private:
  struct Slot {
    uint32_t left = 0;
    uint32_t right = 0;
    uint32_t rank_plus_one = 0;  // 0: free
  };
  // The place of the pair, or the free one where it would go.
  size_t slot_of(uint32_t left, uint32_t right) const;

  WholeTokens whole_tokens_;
  std::vector<uint32_t> merged_;  // by rank
  std::vector<Slot> slots_;       // open addressing; a power of two, at most half full
  size_t capacity_;
};

}  // namespace deltafin::text
