// The tokenizer of Kimi K2, K2.5, Linear and K3: ranks 0..N-1, then 256 control tokens.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "text/control_tokens.h"
#include "text/rank_table.h"
#include "text/split_pattern.h"
#include "text/tokenizer.h"

namespace deltafin::text {

// A text becomes tokens in five steps, each a file of this room:
//   1. very long text is cut (long_text);
//   2. with SpecialTokens::Parse, control tokens are taken out, from the left, the longest first,
//   and
//      what lies between them goes on alone (control_tokens);
//   3. a regular expression cuts it into pieces (kimi_pattern, split_pattern);
//   4. a piece becomes the tokens that merging bytes by rank leaves (bpe);
//   5. a rank is the token's id.
// Nothing is normalised and no token is added, so the bytes of the tokens put together are the
// text.
class KimiTokenizer final : public Tokenizer {
 public:
  // `ranks` must hold every single byte, and the control tokens must start at ranks.size().
  // Errors: Usage, when the PCRE2 at hand is too old for the split pattern (before 10.40).
  static Result<std::unique_ptr<Tokenizer>> create(RankTable ranks, ControlTokens control_tokens);

  Result<std::vector<TokenId>> encode(std::string_view text, SpecialTokens mode) const override;
  Result<std::string_view> bytes_of(TokenId id) const override;
  std::optional<TokenId> find_control_token(std::string_view spelling) const override {
    return control_tokens_.id_of(spelling);
  }
  bool is_special(TokenId id) const override { return control_tokens_.contains(id); }
  size_t vocabulary_size() const override { return ranks_.size() + kControlTokenCount; }

 private:
  class Encoding;

  KimiTokenizer(RankTable ranks, ControlTokens control_tokens, SplitPattern pattern);

  RankTable ranks_;
  ControlTokens control_tokens_;
  SplitPattern pattern_;
};

}  // namespace deltafin::text
