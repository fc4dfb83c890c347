// Generated tokens as what a reader sees: text, or their ids where there is no tokenizer.
#pragma once

#include <string>

#include "base/token.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace deltafin::cli {

class TokenText {
 public:
  // `tokenizer` must outlive this; null for ids: "17,4,99", which --ids reads.
  explicit TokenText(const text::Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // What can be shown once `id` is there: whole code points, nothing for a control token, U+FFFD
  // for an id that the model has and the tokenizer has not.
  std::string push(TokenId id);
  // What was held back: the start of a code point that never got its end, as U+FFFD.
  std::string finish();

 private:
  const text::Tokenizer* tokenizer_;
  text::StreamDecoder decoder_;
  bool is_first_ = true;
};

}  // namespace deltafin::cli
