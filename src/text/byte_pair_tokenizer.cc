#include "text/byte_pair_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "text/bpe.h"
#include "text/nfc.h"
#include "text/utf8.h"

namespace deltafin::text {

// The working memory of one encode() call, and the tokens so far.
class BytePairTokenizer::Encoding {
 public:
  explicit Encoding(const TokenizerParts& parts)
      : parts_(parts), split_scratch_(parts.pattern), encoder_(*parts.vocabulary) {}

  Status append_text(std::string_view text) {
    if (parts_.normalization == Normalization::Nfc) text = to_nfc(text, normalized_);
    TRY_STATUS(parts_.pattern.split(text, split_scratch_, pieces_));
    for (const std::string_view piece : pieces_) encoder_.encode(piece, tokens_);
    return {};
  }

  Status append_text_with_control_tokens(std::string_view text) {
    size_t at = 0;
    while (const auto match = parts_.control_tokens.find(text, at)) {
      TRY_STATUS(append_text(text.substr(at, match->begin - at)));
      tokens_.push_back(match->id);
      at = match->begin + match->size;
    }
    return append_text(text.substr(at));
  }

  std::vector<TokenId> take() && { return std::move(tokens_); }

 private:
  const TokenizerParts& parts_;
  SplitPattern::Scratch split_scratch_;
  BytePairEncoder encoder_;
  std::string normalized_;
  std::vector<std::string_view> pieces_;
  std::vector<TokenId> tokens_;
};

namespace {

Status check_text(std::string_view text) {
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
  return {};
}

}  // namespace

BytePairTokenizer::BytePairTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
  CHECK(parts_.control_tokens.first_id() == static_cast<TokenId>(ordinary().size()));
}

Result<std::vector<TokenId>> BytePairTokenizer::encode(std::string_view text,
                                                       SpecialTokens mode) const {
  TRY_STATUS(check_text(text));
  Encoding encoding(parts_);
  for (const std::string_view part :
       parts_.cuts ? cut_long_text(text, *parts_.cuts) : std::vector<std::string_view>{text}) {
    TRY_STATUS(mode == SpecialTokens::Parse ? encoding.append_text_with_control_tokens(part)
                                            : encoding.append_text(part));
  }
  return std::move(encoding).take();
}

Result<std::string_view> BytePairTokenizer::bytes_of(TokenId id) const {
  if (id >= 0 && static_cast<size_t>(id) < ordinary().size())
    return ordinary().bytes(static_cast<Rank>(id));
  if (parts_.control_tokens.contains(id)) return parts_.control_tokens.spelling(id);
  return fail(ErrorCode::Usage, fmt::format("token id {} is outside the vocabulary 0..{}", id,
                                            vocabulary_size() - 1));
}

bool BytePairTokenizer::is_special(TokenId id) const {
  return parts_.control_tokens.contains(id) &&
         !std::ranges::binary_search(parts_.shown_control_tokens, id);
}

}  // namespace deltafin::text
