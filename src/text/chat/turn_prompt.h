// A conversation as the prompt of its next turn.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "text/chat/chat_options.h"
#include "text/chat/chat_template.h"
#include "text/chat/conversation.h"
#include "text/tokenizer.h"

namespace deltafin::text {

// The whole conversation in tokens, ending where the model begins its answer.
struct TurnPrompt {
  std::vector<TokenId> ids;
  // So many of them the next prompts begin with as well, whatever is answered: a template may write
  // a turn that is over otherwise than one that begins. A state at this border serves again where
  // that after the answer does not.
  size_t lasting = 0;
};

// Errors: Usage, from the template or Tokenizer::encode.
Result<std::vector<TokenId>> conversation_tokens(const ChatTemplate& chat_template,
                                                 const ChatOptions& options,
                                                 const Tokenizer& tokenizer,
                                                 const Conversation& conversation);

// The same for a conversation whose last message the model is to answer, and what lasts of it.
Result<TurnPrompt> make_turn_prompt(const ChatTemplate& chat_template, const ChatOptions& options,
                                    const Tokenizer& tokenizer, const Conversation& conversation);

}  // namespace deltafin::text
