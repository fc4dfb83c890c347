#include "cli/token_text.h"

#include <fmt/format.h>

namespace deltafin::cli {

std::string TokenText::push(TokenId id) {
  const bool first = is_first_;
  is_first_ = false;
  if (tokenizer_ == nullptr) return fmt::format("{}{}", first ? "" : ",", id);
  if (tokenizer_->is_special(id)) return "";
  const Result<std::string_view> bytes = tokenizer_->bytes_of(id);
  // 0xFF is in no code point, so the decoder puts U+FFFD in its place.
  return decoder_.push(bytes ? *bytes : "\xff");
}

std::string TokenText::finish() { return decoder_.finish(); }

}  // namespace deltafin::cli
