#include "cli/token_text.h"

#include <gtest/gtest.h>

namespace deltafin::cli {
namespace {

// Ids 0..255 are bytes, 256 is a control token.
class ByteAndEndTokenizer final : public text::Tokenizer {
 public:
  Result<std::vector<TokenId>> encode(std::string_view, text::SpecialTokens) const override {
    return std::vector<TokenId>();
  }
  Result<std::string_view> bytes_of(TokenId id) const override {
    if (id == 256) return std::string_view("<|end|>");
    if (id > 256) return fail(ErrorCode::Usage, "outside the vocabulary");
    return std::string_view(bytes_).substr(size_t(id), 1);
  }
  std::optional<TokenId> find_control_token(std::string_view) const override {
    return std::nullopt;
  }
  bool is_special(TokenId id) const override { return id == 256; }
  size_t vocabulary_size() const override { return 257; }

 private:
  std::string bytes_ = [] {
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    return all;
  }();
};

TEST(TokenText, ShowsWholeCodePointsOnly) {
  const ByteAndEndTokenizer tokenizer;
  TokenText text(&tokenizer);
  EXPECT_EQ(text.push(0xC3), "");
  EXPECT_EQ(text.push(0xA9), "\u00E9");
  EXPECT_EQ(text.push('x'), "x");
  EXPECT_EQ(text.push(0xE2), "");
  EXPECT_EQ(text.finish(), "\uFFFD");
}

TEST(TokenText, HidesControlTokens) {
  const ByteAndEndTokenizer tokenizer;
  TokenText text(&tokenizer);
  EXPECT_EQ(text.push('a') + text.push(256) + text.push('b'), "ab");
}

TEST(TokenText, ShowsAnIdThatTheTokenizerLacksAsReplacement) {
  const ByteAndEndTokenizer tokenizer;
  EXPECT_EQ(TokenText(&tokenizer).push(300), "\uFFFD");
}

TEST(TokenText, IsAListOfIdsWithoutATokenizer) {
  TokenText text(nullptr);
  // One statement each: the operands of + are evaluated in any order.
  std::string shown = text.push(17);
  shown += text.push(4);
  shown += text.push(99);
  shown += text.finish();
  EXPECT_EQ(shown, "17,4,99");
}

}  // namespace
}  // namespace deltafin::cli
