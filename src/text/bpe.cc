#include "text/bpe.h"

#include "base/check.h"

namespace deltafin::text {

BytePairEncoder::BytePairEncoder(const BytePairVocabulary& vocabulary)
    : vocabulary_(&vocabulary),
      known_whole_(vocabulary.tokens().size(), vocabulary.keeps_tokens_whole()) {}

void BytePairEncoder::encode(std::string_view piece, std::vector<TokenId>& tokens) {
  if (piece.empty()) return;
  const std::optional<Rank> whole = vocabulary_->tokens().find(piece);
  if (whole && known_whole_[*whole]) {
    tokens.push_back(static_cast<TokenId>(*whole));
    return;
  }
  merge_bytes(piece);
  for (uint32_t part = 0; part < piece.size(); part = parts_[part].end)
    tokens.push_back(static_cast<TokenId>(parts_[part].token));
  if (whole && parts_[0].token == *whole) known_whole_[*whole] = true;
}

void BytePairEncoder::merge_bytes(std::string_view piece) {
  start_with_single_bytes(piece);
  while (!queue_.empty()) {
    const uint64_t entry = queue_.top();
    queue_.pop();
    const uint32_t part = static_cast<uint32_t>(entry);
    if (parts_[part].merge == entry >> 32) merge_with_next(piece, part);
  }
}

void BytePairEncoder::start_with_single_bytes(std::string_view piece) {
  CHECK(piece.size() < kNone);
  parts_.resize(piece.size());
  for (uint32_t i = 0; i < piece.size(); ++i) {
    parts_[i] = {.end = i + 1,
                 .previous = i == 0 ? kNone : i - 1,
                 .token = vocabulary_->token_of_byte(piece[i]),
                 .merge = kNone};
  }
  for (uint32_t i = 0; i < piece.size(); ++i) offer_merge(piece, i);
}

void BytePairEncoder::merge_with_next(std::string_view piece, uint32_t part) {
  Part& left = parts_[part];
  Part& right = parts_[left.end];
  left.token = vocabulary_->token_of_merge(left.merge);
  left.end = right.end;
  right.merge = kNone;
  if (left.end < piece.size()) parts_[left.end].previous = part;
  offer_merge(piece, part);
  if (left.previous != kNone) offer_merge(piece, left.previous);
}

void BytePairEncoder::offer_merge(std::string_view piece, uint32_t part) {
  Part& left = parts_[part];
  left.merge = kNone;
  if (left.end == piece.size()) return;
  const Part& right = parts_[left.end];
  const std::optional<Rank> merge =
      vocabulary_->find_merge(left.token, right.token, piece.substr(part, right.end - part));
  if (!merge) return;
  left.merge = *merge;
  queue_.push(uint64_t{*merge} << 32 | part);
}

}  // namespace deltafin::text
