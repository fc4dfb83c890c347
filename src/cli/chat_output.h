// What a chat shows: the answer on standard output, the reasoning, if wanted, on standard error.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/chat_flags.h"
#include "engine/generate.h"
#include "text/chat/channel_parser.h"
#include "text/tokenizer.h"

namespace deltafin::cli {

class ChatOutput {
 public:
  using Sink = std::function<void(std::string_view)>;

  // `tokenizer` must outlive it. `reasoning` is where reasoning is shown; empty: nowhere. `dimmed`:
  // in the dim letters of a terminal. Errors: as Tokenizer::encode.
  static Result<ChatOutput> create(const text::Tokenizer& tokenizer, const ChatSetup& setup,
                                   Sink reasoning, bool dimmed);

  // The part of the answer that has become certain with this token. One that the tokenizer does not
  // know is U+FFFD.
  std::string push(TokenId id);
  // The rest of the answer.
  std::string finish(text::OutputEnd end);

  const std::string& reasoning() const { return reasoning_; }
  const std::vector<text::ParsedCall>& calls() const { return calls_; }
  // In which channel the output ended.
  text::Channel channel() const { return channels_.channel(); }

 private:
  ChatOutput(text::TokenChannels channels, Sink show, bool dimmed)
      : channels_(std::move(channels)), show_(std::move(show)), dimmed_(dimmed) {}

  std::string take(const std::vector<text::ChannelEvent>& events);
  void show(std::string_view text);
  void end_shown_reasoning();

  text::TokenChannels channels_;
  Sink show_;
  bool dimmed_;
  bool is_showing_ = false;
  std::string reasoning_;
  std::vector<text::ParsedCall> calls_;
};

// Warns of what a reader of the answer alone would miss.
void warn_of_what_is_not_in_the_answer(const engine::GenerationResult& result,
                                       const ChatOutput& chat);

}  // namespace deltafin::cli
