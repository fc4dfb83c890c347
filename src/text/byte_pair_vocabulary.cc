#include "text/byte_pair_vocabulary.h"

#include <utility>

#include "base/check.h"

namespace deltafin::text {

BytePairVocabulary::BytePairVocabulary(RankTable tokens) : tokens_(std::move(tokens)) {
  for (size_t value = 0; value < byte_tokens_.size(); ++value) {
    const char byte = static_cast<char>(value);
    const std::optional<Rank> token = tokens_.find({&byte, 1});
    CHECK(token.has_value());
    byte_tokens_[value] = *token;
  }
}

}  // namespace deltafin::text
