// The turns of a chat: messages and commands in, answers out, until one side has enough.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/cancel.h"
#include "base/result.h"
#include "cli/chat_input.h"
#include "cli/chat_output.h"
#include "cli/chat_session.h"
#include "cli/chat_timeline.h"
#include "cli/message_source.h"
#include "cli/standard_output.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "state/snapshot.h"
#include "text/tokenizer.h"

namespace deltafin::cli {

class ChatLoop {
 public:
  // All must outlive the loop. `cancel` is the token of the signal handlers.
  struct Wiring {
    engine::Engine& engine;
    const text::Tokenizer& tokenizer;
    ChatSession& session;
    MessageSource& source;
    const state::SnapshotOwner& owner;
    const engine::GenerateRequest& request;  // everything but the prompt
    uint64_t context;                        // positions, of the whole conversation
    bool show_reasoning;
    CancelToken& cancel;
  };
  explicit ChatLoop(const Wiring& wiring) : wiring_(wiring), timeline_(wiring.engine) {}

  // The exit status: at a terminal 0; else that of the first message that went wrong, or of a stop.
  // Errors: Io, when input or output fail.
  Result<int> run();

 private:
  enum class After : uint8_t { GoOn, Leave };

  Status obey(std::string_view text);
  Status run_command(const ChatCommand& command);
  Status take_turn(const std::string& question);
  Result<engine::GenerationResult> answer(const text::TurnPrompt& prompt, ChatOutput& chat,
                                          std::string& text);
  void say_how_it_ended(const engine::GenerationResult& result, const ChatOutput& chat,
                        const text::TurnPrompt& prompt) const;
  Status save(const std::string& file);
  Status load(const std::string& file);
  std::string stats() const;
  // The message is over, well or not.
  After end_of_message(const Status& status);

  Wiring wiring_;
  ChatTimeline timeline_;
  StandardOutput output_;
  std::set<std::string> our_files_;  // may be written again
  int exit_code_ = 0;
};

}  // namespace deltafin::cli
