#include "text/bpe.h"

#include "base/check.h"

namespace deltafin::text {

void BytePairEncoder::encode(std::string_view piece, std::vector<TokenId>& tokens) {
  if (piece.empty()) return;
  if (const std::optional<Rank> whole = ranks_->find(piece)) {
    tokens.push_back(static_cast<TokenId>(*whole));
    return;
  }
  start_with_single_bytes(piece);
  while (!queue_.empty()) {
    const uint64_t entry = queue_.top();
    queue_.pop();
    const uint32_t part = static_cast<uint32_t>(entry);
    if (parts_[part].union_rank == entry >> 32) merge_with_next(piece, part);
  }
  for (uint32_t part = 0; part < piece.size(); part = parts_[part].end)
    tokens.push_back(static_cast<TokenId>(parts_[part].rank));
}

void BytePairEncoder::start_with_single_bytes(std::string_view piece) {
  CHECK(piece.size() < kNone);
  parts_.resize(piece.size());
  for (uint32_t i = 0; i < piece.size(); ++i) {
    const std::optional<Rank> rank = ranks_->find(piece.substr(i, 1));
    CHECK(rank.has_value());
    parts_[i] = {
        .end = i + 1, .previous = i == 0 ? kNone : i - 1, .rank = *rank, .union_rank = kNone};
  }
  for (uint32_t i = 0; i < piece.size(); ++i) offer_union(piece, i);
}

void BytePairEncoder::merge_with_next(std::string_view piece, uint32_t part) {
  Part& left = parts_[part];
  Part& right = parts_[left.end];
  left.rank = left.union_rank;
  left.end = right.end;
  right.union_rank = kNone;
  if (left.end < piece.size()) parts_[left.end].previous = part;
  offer_union(piece, part);
  if (left.previous != kNone) offer_union(piece, left.previous);
}

void BytePairEncoder::offer_union(std::string_view piece, uint32_t part) {
  Part& left = parts_[part];
  left.union_rank = kNone;
  if (left.end == piece.size()) return;
  const std::optional<Rank> rank = ranks_->find(piece.substr(part, parts_[left.end].end - part));
  if (!rank) return;
  left.union_rank = *rank;
  queue_.push(uint64_t{*rank} << 32 | part);
}

}  // namespace deltafin::text
