// A conversation that grows, and what of it the model needs to read. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "cli/chat_flags.h"
#include "text/chat/conversation.h"
#include "text/chat/turn_prompt.h"
#include "text/tokenizer.h"

namespace deltafin::cli {

class ChatSession {
 public:
  // `tokenizer` must outlive it.
  ChatSession(const text::Tokenizer& tokenizer, ChatSetup setup, text::Conversation beginning)
      : tokenizer_(tokenizer),
        setup_(std::move(setup)),
        beginning_(std::move(beginning)),
        conversation_(beginning_) {}

  const ChatSetup& setup() const { return setup_; }
  // Questions that were answered, in part at least.
  size_t turn_count() const;

  // The prompt of a question, which is not yet part of the conversation. Errors: Usage, for an
  // empty text or one that is not UTF-8; those of the template.
  Result<text::TurnPrompt> prompt_for(const std::string& question) const;
  // The question and what was answered become part of the conversation.
  void add_turn(const std::string& question, const std::string& reasoning,
                const std::string& answer);
  // Back to the beginning.
  void clear() { conversation_ = beginning_; }

  // "deltafin.chat.v1": the messages as OpenAI's API has them.
  std::string to_json() const;
  // The conversation of such a text instead of this one. Errors: Usage, naming the field; nothing
  // has changed then.
  Status load_json(std::string_view json);

 private:
  const text::Tokenizer& tokenizer_;
  ChatSetup setup_;
  text::Conversation beginning_, conversation_;
};

// The state that a prompt can go on from, of those that are there.
enum class ReuseFrom : uint8_t { Sequence, Border, Nothing };

// One whose tokens the prompt begins with and goes on from, the longer first. Either may be empty.
ReuseFrom choose_reuse(std::span<const TokenId> prompt, std::span<const TokenId> sequence,
                       std::span<const TokenId> border);

}  // namespace deltafin::cli
