// What merging bytes needs to know of a vocabulary: its tokens, and which two of them become one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "text/rank_table.h"

namespace deltafin::text {

// Immutable; any thread may read.
class BytePairVocabulary {
 public:
  // `tokens`, in the order of their ids, must hold every single byte.
  explicit BytePairVocabulary(RankTable tokens);
  virtual ~BytePairVocabulary() = default;
  BytePairVocabulary(const BytePairVocabulary&) = delete;
  BytePairVocabulary& operator=(const BytePairVocabulary&) = delete;

  const RankTable& tokens() const { return tokens_; }
  uint32_t token_of_byte(char byte) const { return byte_tokens_[static_cast<uint8_t>(byte)]; }

  // Whether a piece that is a token stays whole, whatever merging its bytes would lead to.
  virtual bool keeps_tokens_whole() const = 0;
  // The priority of merging the tokens `left` and `right`, whose bytes are `both`: the lowest goes
  // first. Nothing when they do not become one.
  virtual std::optional<Rank> find_merge(uint32_t left, uint32_t right,
                                         std::string_view both) const = 0;
  // The token that the merge of that priority makes.
  virtual uint32_t token_of_merge(Rank rank) const = 0;

 private:
  RankTable tokens_;
  std::array<uint32_t, 256> byte_tokens_;
};

// Of a rank file: any two tokens become one whose bytes together are a token, and the rank of that
// is the priority.
class RankVocabulary final : public BytePairVocabulary {
 public:
  using BytePairVocabulary::BytePairVocabulary;

  bool keeps_tokens_whole() const override { return true; }
  std::optional<Rank> find_merge(uint32_t /*left*/, uint32_t /*right*/,
                                 std::string_view both) const override {
    return tokens().find(both);
  }
  uint32_t token_of_merge(Rank rank) const override { return rank; }
};

}  // namespace deltafin::text
