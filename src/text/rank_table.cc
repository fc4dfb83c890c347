#include "text/rank_table.h"

#include <fmt/format.h>

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

Status check_single_bytes(const RankTable& table) {
  std::string missing;
  size_t missing_count = 0;
  for (unsigned value = 0; value < 256; ++value) {
    const char byte = static_cast<char>(value);
    if (table.find(std::string_view(&byte, 1))) continue;
    if (++missing_count <= 8) missing += fmt::format(" 0x{:02X}", value);
  }
  if (missing_count == 0) return {};
  return fail(ErrorCode::BadModel,
              fmt::format("{} of the 256 single bytes are no token:{}{}; the file is cut short or "
                          "not a byte-level vocabulary",
                          missing_count, missing, missing_count > 8 ? " ..." : ""));
}

}  // namespace deltafin::text
