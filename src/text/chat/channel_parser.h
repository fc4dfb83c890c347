// A model's output, token by token, as reasoning, answer and calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/chat/channels.h"
#include "text/chat/chat_template.h"
#include "text/chat/marker_scanner.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace deltafin::text {

// What a channel parser must know of a request.
struct ChannelSetup {
  ChannelFormat format = ChannelFormat::KimiK3;
  ChannelStart start = ChannelStart::Reasoning;
  JsonValue::Array tools;  // that were declared
};

// Output as text, in which every marker is found by its spelling: for recorded outputs, and for
// models whose markers are no tokens. Text must come in whole code points. One per output; not
// thread-safe.
class TextChannels {
 public:
  explicit TextChannels(const ChannelSetup& setup);

  // What has become certain. Never a part of a marker.
  std::vector<ChannelEvent> push(std::string_view text);
  // The rest. At CutOff, what may have been the beginning of a marker is dropped.
  std::vector<ChannelEvent> finish(OutputEnd end);
  // Where the output ended, once finish() was called: Call when a call was dropped.
  Channel channel() const { return grammar_->channel(); }

 private:
  std::unique_ptr<ChannelGrammar> grammar_;
  MarkerScanner scanner_;
};

// Output as tokens. A marker that is a token of the vocabulary is known by its id only: text that
// spells it is text. Those that are not (Qwen3.5's <function=, <think> of models without the token)
// are found by their spelling. Incomplete UTF-8 is held back, ill-formed becomes U+FFFD. One per
// output; not thread-safe.
class TokenChannels {
 public:
  // `tokenizer` must outlive it. Errors: as Tokenizer::encode.
  static Result<TokenChannels> create(const Tokenizer& tokenizer, const ChannelSetup& setup);

  // The token that ends the turn may be given or not. Errors: Usage, for an id outside the
  // vocabulary.
  Result<std::vector<ChannelEvent>> push(TokenId id);
  std::vector<ChannelEvent> finish(OutputEnd end);
  Channel channel() const { return grammar_->channel(); }

 private:
  TokenChannels(const Tokenizer& tokenizer, std::unique_ptr<ChannelGrammar> grammar,
                std::unordered_map<TokenId, std::string_view> ids, MarkerScanner scanner);

  const Tokenizer* tokenizer_;
  std::unique_ptr<ChannelGrammar> grammar_;
  std::unordered_map<TokenId, std::string_view> ids_;  // of markers
  MarkerScanner scanner_;
  StreamDecoder decoder_;
};

}  // namespace deltafin::text
