#include "text/chat/turn_prompt.h"

#include <algorithm>

#include "text/chat/segments.h"

namespace deltafin::text {

Result<std::vector<TokenId>> conversation_tokens(const ChatTemplate& chat_template,
                                                 const ChatOptions& options,
                                                 const Tokenizer& tokenizer,
                                                 const Conversation& conversation) {
  TRY(const std::vector<Segment> segments, chat_template.render(conversation, options));
  return encode_segments(tokenizer, segments);
}

Result<TurnPrompt> make_turn_prompt(const ChatTemplate& chat_template, const ChatOptions& options,
                                    const Tokenizer& tokenizer, const Conversation& conversation) {
  TurnPrompt prompt;
  TRY(prompt.ids, conversation_tokens(chat_template, options, tokenizer, conversation));
  // How the template writes this turn once it is over shows with any other that follows.
  constexpr const char* kAny = "A";
  Conversation later = conversation;
  Message& answer = later.messages.emplace_back();
  answer.role = Role::Assistant;
  answer.content = kAny;
  answer.reasoning_content = kAny;
  later.messages.emplace_back().content = kAny;
  TRY(const std::vector<TokenId> later_ids,
      conversation_tokens(chat_template, options, tokenizer, later));
  prompt.lasting =
      static_cast<size_t>(std::ranges::mismatch(prompt.ids, later_ids).in1 - prompt.ids.begin());
  return prompt;
}

}  // namespace deltafin::text
