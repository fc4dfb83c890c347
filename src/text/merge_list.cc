#include "text/merge_list.h"

#include <bit>
#include <limits>
#include <utility>

#include "base/check.h"

namespace deltafin::text {

MergeListVocabulary::MergeListVocabulary(RankTable tokens, WholeTokens whole_tokens,
                                         size_t merge_count)
    : BytePairVocabulary(std::move(tokens)), whole_tokens_(whole_tokens), capacity_(merge_count) {
  CHECK(merge_count < std::numeric_limits<uint32_t>::max());
  merged_.reserve(merge_count);
  slots_.resize(std::bit_ceil(2 * merge_count + 1));
}

bool MergeListVocabulary::add(uint32_t left, uint32_t right, uint32_t token) {
  CHECK(merge_count() < capacity_);
  Slot& slot = slots_[slot_of(left, right)];
  if (slot.rank_plus_one != 0) return false;
  merged_.push_back(token);
  slot = {.left = left, .right = right, .rank_plus_one = static_cast<uint32_t>(merge_count())};
  return true;
}

std::optional<Rank> MergeListVocabulary::find_merge(uint32_t left, uint32_t right,
                                                    std::string_view /*both*/) const {
  const Slot& slot = slots_[slot_of(left, right)];
  if (slot.rank_plus_one == 0) return std::nullopt;
  return slot.rank_plus_one - 1;
}

size_t MergeListVocabulary::slot_of(uint32_t left, uint32_t right) const {
  // Multiplying by an odd number of many bits mixes upwards: the upper bits depend on all of both.
  const uint64_t hash = (uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15ull;
  const size_t mask = slots_.size() - 1;
  for (size_t at = (hash ^ hash >> 32) & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.rank_plus_one == 0 || (slot.left == left && slot.right == right)) return at;
  }
}

}  // namespace deltafin::text
