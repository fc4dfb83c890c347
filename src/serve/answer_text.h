// Tokens of one answer as the text that a client may see of them. One per answer; not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "text/chat/channel_parser.h"
#include "text/chat/stop_strings.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace deltafin::serve {

struct TextPiece {
  std::string content = {}, reasoning = {};
  std::vector<text::ParsedCall> calls = {};

  bool empty() const { return content.empty() && reasoning.empty() && calls.empty(); }
};

class AnswerText {
 public:
  virtual ~AnswerText() = default;

  // What has become certain with this token. Errors: Usage, for an id outside the vocabulary.
  virtual Result<TextPiece> push(TokenId token) = 0;
  // The rest. Nothing may follow.
  virtual TextPiece finish(text::OutputEnd end) = 0;
  // Whether a stop string has ended the answer.
  virtual bool stopped() const = 0;
  // Whether some of what was pushed may still turn out to begin a stop string.
  virtual bool holds_back() const = 0;
  // Whether the last token was one of the reasoning.
  virtual bool is_reasoning() const = 0;
};

// Of a completion: all the text. `tokenizer` and `stops` must outlive it.
std::unique_ptr<AnswerText> make_plain_text(const text::Tokenizer& tokenizer,
                                            const text::StopStrings& stops);
// Of a chat: reasoning, answer and calls; stop strings end the answer and do not look into the
// rest. Errors: as Tokenizer::encode.
Result<std::unique_ptr<AnswerText>> make_chat_text(const text::Tokenizer& tokenizer,
                                                   const text::ChannelSetup& setup,
                                                   const text::StopStrings& stops);

}  // namespace deltafin::serve
