// run --chat and chat: messages of a user as a prompt, the output as an answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"
#include "cli/prompt.h"
#include "cli/saved_state.h"
#include "io/file.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer.h"

namespace deltafin::cli {

struct ChatFlags {
  bool chat = false;
  std::optional<std::string> system, effort, template_name;
  std::optional<bool> thinking;
  bool show_reasoning = false;

  // With --chat itself, or for a command that is a chat anyway. The flags must outlive the command
  // line's parse().
  void declare(CommandLine& line);
  void declare_for_chat(CommandLine& line);
  // Or for a server, whose messages come with requests.
  void declare_for_server(CommandLine& line);
  // Whether any of them says how the model is talked to.
  bool chooses_template() const { return thinking || effort || template_name; }
  // Errors: Usage, for a flag that is only for --chat without it, and for one that cannot be with
  // it: ids, control tokens in the prompt, a loaded state.
  Status check(const PromptFlags& prompt, const StateFlags& state) const;
};

// How one talks to a model.
struct ChatSetup {
  const text::ChatTemplate* chat_template;
  text::ChatOptions options;
  TokenId end_of_turn;
};

// Errors: Usage, for an unknown name of a template, an effort that the template does not know, a
// vocabulary without its control tokens; BadModel, for a directory whose template is unknown; Io.
Result<ChatSetup> make_chat_setup(const ChatFlags& flags, const text::Tokenizer& tokenizer,
                                  const io::Storage& storage, const std::string& directory);

// What stands in front of the first message: --system, or nothing.
text::Conversation beginning_of_chat(const ChatFlags& flags);

// A conversation of one message, ready for the model.
struct ChatPrompt : ChatSetup {
  std::vector<TokenId> ids;
};

// `message` is the user's. Errors: Usage, for an empty message; those of the functions above.
Result<ChatPrompt> make_chat_prompt(const ChatFlags& flags, const std::string& message,
                                    const text::Tokenizer& tokenizer, const io::Storage& storage,
                                    const std::string& directory);

}  // namespace deltafin::cli
