#include "text/rank_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "base/check.h"

namespace deltafin::text {

RankTable::RankTable(size_t token_count, size_t bytes_max) : capacity_(token_count) {
  CHECK(token_count < std::numeric_limits<uint32_t>::max());
  CHECK(bytes_max <= std::numeric_limits<uint32_t>::max());
  bytes_.reserve(bytes_max);
  ends_.reserve(token_count);
  slots_.resize(std::bit_ceil(2 * token_count + 1));
}

std::optional<Rank> RankTable::add(std::string_view token) {
  CHECK(!token.empty());
  CHECK(size() < capacity_);
  CHECK(token.size() <= bytes_.capacity() - bytes_.size());
  const uint64_t hash = std::hash<std::string_view>{}(token);
  Slot& slot = slots_[slot_of(token, hash)];
  if (slot.rank_plus_one != 0) return slot.rank_plus_one - 1;
  bytes_.insert(bytes_.end(), token.begin(), token.end());
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  slot = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(size())};
  longest_ = std::max(longest_, token.size());
  return std::nullopt;
}

std::optional<Rank> RankTable::find(std::string_view token) const {
  // A merge of two long tokens is no token, and hashing it would cost more than knowing that.
  if (token.size() > longest_) return std::nullopt;
  const Slot slot = slots_[slot_of(token, std::hash<std::string_view>{}(token))];
  if (slot.rank_plus_one == 0) return std::nullopt;
  return slot.rank_plus_one - 1;
}

std::string_view RankTable::bytes(Rank rank) const {
  DCHECK(rank < size());
  const size_t begin = rank == 0 ? 0 : ends_[rank - 1];
  return {bytes_.data() + begin, ends_[rank] - begin};
}

size_t RankTable::slot_of(std::string_view token, uint64_t hash) const {
  const uint32_t hash_high = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot slot = slots_[at];
    if (slot.rank_plus_one == 0) return at;
    if (slot.hash_high == hash_high && bytes(slot.rank_plus_one - 1) == token) return at;
  }
}

}  // namespace deltafin::text
