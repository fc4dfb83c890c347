#include "text/kimi_tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "text/bpe.h"
#include "text/kimi_pattern.h"
#include "text/long_text.h"
#include "text/utf8.h"

namespace deltafin::text {

// The working memory of one encode() call, and the tokens so far.
class KimiTokenizer::Encoding {
 public:
  explicit Encoding(const KimiTokenizer& tokenizer)
      : tokenizer_(tokenizer), split_scratch_(tokenizer.pattern_), encoder_(tokenizer.ranks_) {}

  Status append_text(std::string_view text) {
    TRY_STATUS(tokenizer_.pattern_.split(text, split_scratch_, pieces_));
    for (const std::string_view piece : pieces_) encoder_.encode(piece, tokens_);
    return {};
  }

  Status append_text_with_control_tokens(std::string_view text) {
    size_t at = 0;
    while (const auto match = tokenizer_.control_tokens_.find(text, at)) {
      TRY_STATUS(append_text(text.substr(at, match->begin - at)));
      tokens_.push_back(match->id);
      at = match->begin + match->size;
    }
    return append_text(text.substr(at));
  }

  std::vector<TokenId> take() && { return std::move(tokens_); }

 private:
  const KimiTokenizer& tokenizer_;
  SplitPattern::Scratch split_scratch_;
  BytePairEncoder encoder_;
  std::vector<std::string_view> pieces_;
  std::vector<TokenId> tokens_;
};

KimiTokenizer::KimiTokenizer(RankTable ranks, ControlTokens control_tokens, SplitPattern pattern)
    : ranks_(std::move(ranks)),
      control_tokens_(std::move(control_tokens)),
      pattern_(std::move(pattern)) {}

Result<std::unique_ptr<Tokenizer>> KimiTokenizer::create(RankTable ranks,
                                                         ControlTokens control_tokens) {
  CHECK(control_tokens.contains(static_cast<TokenId>(ranks.size())));
  CHECK(!control_tokens.contains(static_cast<TokenId>(ranks.size()) - 1));
  TRY(SplitPattern pattern, SplitPattern::compile(kimi_split_pattern(), SplitOptions{}));
  return std::unique_ptr<Tokenizer>(
      new KimiTokenizer(std::move(ranks), std::move(control_tokens), std::move(pattern)));
}

Result<std::vector<TokenId>> KimiTokenizer::encode(std::string_view text,
                                                   SpecialTokens mode) const {
  if (text.size() > limits::kPromptBytes)
    return fail(ErrorCode::Usage, fmt::format("the text has {} bytes, more than the {} that are "
                                              "tokenized at a time",
                                              text.size(), limits::kPromptBytes));
  if (const std::optional<size_t> at = find_ill_formed(text))
    return fail(
        ErrorCode::Usage,
        fmt::format("the text is not well-formed UTF-8 at byte {} (0x{:02X}); convert it to "
                    "UTF-8 first",
                    *at, static_cast<uint8_t>(text[*at])));
  Encoding encoding(*this);
  for (const std::string_view part : cut_long_text(text, LongTextCuts{})) {
    TRY_STATUS(mode == SpecialTokens::Parse ? encoding.append_text_with_control_tokens(part)
                                            : encoding.append_text(part));
  }
  return std::move(encoding).take();
}

Result<std::string_view> KimiTokenizer::bytes_of(TokenId id) const {
  if (id >= 0 && static_cast<size_t>(id) < ranks_.size())
    return ranks_.bytes(static_cast<Rank>(id));
  if (control_tokens_.contains(id)) return control_tokens_.spelling(id);
  return fail(ErrorCode::Usage, fmt::format("token id {} is outside the vocabulary 0..{}", id,
                                            vocabulary_size() - 1));
}

}  // namespace deltafin::text
