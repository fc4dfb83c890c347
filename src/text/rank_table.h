// The ordinary tokens of a byte-pair vocabulary, found by their bytes or by their rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace deltafin::text {

// The order in which a token was learned, and its id. In a rank file it is the priority of its
// merge, too; a tokenizer.json lists merges apart (merge_list).
using Rank = uint32_t;

// All bytes lie in one string, so 163,584 tokens cost no allocation each. Filled by add(); once
// filled, any thread may read. Views into it live as long as the table, and survive moving it.
class RankTable {
 public:
  // Room for `token_count` tokens of `bytes_max` bytes together.
  RankTable(size_t token_count, size_t bytes_max);

  // Gives `token` the next rank. When a token of the same bytes is there already nothing changes
  // and its rank is returned. There must be room, and `token` must not be empty.
  std::optional<Rank> add(std::string_view token);

  std::optional<Rank> find(std::string_view token) const;
  // `rank` must be below size().
  std::string_view bytes(Rank rank) const;
  size_t size() const { return ends_.size(); }

 private:
  // One place of the hash table. The upper half of the hash spares most looks into the bytes.
  struct Slot {
    uint32_t hash_high = 0;
    uint32_t rank_plus_one = 0;  // 0: free
  };
  // The place of `token`, or the free one where it would go.
  size_t slot_of(std::string_view token, uint64_t hash) const;

  std::vector<char> bytes_;     // a string would move short contents, and views with them
  std::vector<uint32_t> ends_;  // token `rank` ends here in bytes_ and starts at the end before
  std::vector<Slot> slots_;     // open addressing; a power of two, at most half full
  size_t longest_ = 0;
  size_t capacity_;
};

// Whether every single byte is a token: without all of them some texts would have no tokens.
// Errors: BadModel, naming those that are missing.
Status check_single_bytes(const RankTable& table);

}  // namespace deltafin::text
