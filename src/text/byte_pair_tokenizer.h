// The tokenizer of every byte-pair vocabulary: ordinary tokens 0..N-1, control tokens behind them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/byte_pair_vocabulary.h"
#include "text/control_tokens.h"
#include "text/long_text.h"
#include "text/split_pattern.h"
#include "text/tokenizer.h"

namespace deltafin::text {

enum class Normalization : uint8_t { None, Nfc };

// What tokenizers differ in.
struct TokenizerParts {
  std::unique_ptr<BytePairVocabulary> vocabulary;
  ControlTokens control_tokens;               // the first id is the number of ordinary tokens
  std::vector<TokenId> shown_control_tokens;  // those that is_special() does not count; sorted
  std::optional<LongTextCuts> cuts;
  Normalization normalization = Normalization::None;
  SplitPattern pattern;
};

// A text becomes tokens in these steps, each a file of this room:
//   1. very long text is cut, where the vocabulary's makers do so (long_text);
//   2. with SpecialTokens::Parse, control tokens are taken out, from the left, the longest first,
//      and what lies between them goes on alone (control_tokens);
//   3. it is normalised, where the vocabulary asks for that (nfc);
//   4. a regular expression cuts it into pieces (split_pattern, kimi_pattern, qwen_pattern);
//   5. a piece becomes the tokens that merging bytes leaves (bpe).
class BytePairTokenizer final : public Tokenizer {
 public:
  explicit BytePairTokenizer(TokenizerParts parts);

  Result<std::vector<TokenId>> encode(std::string_view text, SpecialTokens mode) const override;
  Result<std::string_view> bytes_of(TokenId id) const override;
  std::optional<TokenId> find_control_token(std::string_view spelling) const override {
    return parts_.control_tokens.id_of(spelling);
  }
  bool is_special(TokenId id) const override;
  size_t vocabulary_size() const override {
    return ordinary().size() + parts_.control_tokens.size();
  }

 private:
  class Encoding;

  const RankTable& ordinary() const { return parts_.vocabulary->tokens(); }

  TokenizerParts parts_;
};

}  // namespace deltafin::text
