#include "cli/chat_loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/machine.h"
#include "cli/events.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/prompt.h"
#include "cli/run_listener.h"
#include "cli/signals.h"
#include "cli/units.h"

namespace deltafin::cli {

using engine::GenerationResult;
using engine::StopReason;

namespace {

constexpr const char* kHowToLeave = "Ctrl-D leaves, /help says more\n";

std::string state_file_of(const std::string& file) { return file + ".state"; }

std::string tokens(uint64_t count) {
  return fmt::format("{} {}", with_separators(count), count == 1 ? "token" : "tokens");
}

std::string turns(uint64_t count) {
  return fmt::format("{} {}", with_separators(count), count == 1 ? "turn" : "turns");
}

std::string describe(const TurnCost& cost) {
  return fmt::format("{} reused, {} read in {}, {} generated, {:.1f} tokens/s after the first",
                     tokens(cost.reused), with_separators(cost.read),
                     human_duration(cost.read_time), with_separators(cost.generated),
                     rate(cost.decode_passes, cost.decode_time));
}

}  // namespace

Result<int> ChatLoop::run() {
  for (;;) {
    TRY(const MessageSource::Reading reading, wiring_.source.next());
    if (reading.kind == MessageSource::Kind::End) return exit_code_;
    if (reading.kind == MessageSource::Kind::Interrupted) {
      if (!wiring_.source.is_terminal() || !forget_interrupt())
        return exit_code(ErrorCode::Cancelled);
      write_to_standard_error(kHowToLeave);
      continue;
    }
    // A person who presses Enter once more wants nothing.
    if (wiring_.source.is_terminal() && reading.text.empty()) continue;
    if (end_of_message(obey(reading.text)) == After::Leave) break;
    TRY_STATUS(output_.status());
  }
  TRY_STATUS(output_.status());
  return output_.reader_is_gone() ? 0 : exit_code(ErrorCode::Cancelled);
}

ChatLoop::After ChatLoop::end_of_message(const Status& status) {
  if (!output_.is_open()) return After::Leave;
  if (!status && status.error().code != ErrorCode::Cancelled) {
    write_to_standard_error(fmt::format("deltafin: {}\n", status.error().what));
    if (!wiring_.source.is_terminal() && exit_code_ == 0)
      exit_code_ = exit_code(status.error().code);
  }
  return forget_interrupt() ? After::GoOn : After::Leave;
}

Status ChatLoop::obey(std::string_view text) {
  TRY(const ChatInput input, parse_chat_input(text));
  if (const auto* command = std::get_if<ChatCommand>(&input)) return run_command(*command);
  return take_turn(std::get<ChatMessage>(input).text);
}

Status ChatLoop::run_command(const ChatCommand& command) {
  switch (command.kind) {
    case ChatCommand::Kind::New:
      wiring_.session.clear();
      timeline_.clear();
      return {};
    case ChatCommand::Kind::Save:
      return save(command.file);
    case ChatCommand::Kind::Load:
      return load(command.file);
    case ChatCommand::Kind::Stats:
      write_to_standard_error(stats());
      return {};
    case ChatCommand::Kind::Help:
      write_to_standard_error(chat_input_help());
      return {};
  }
  return {};
}

Status ChatLoop::take_turn(const std::string& question) {
  TRY(const text::TurnPrompt prompt, wiring_.session.prompt_for(question));
  if (prompt.ids.size() >= wiring_.context)
    return fail(ErrorCode::Usage,
                fmt::format("with this message the conversation has {}, and --context {} leaves no "
                            "room for an answer\n  /new begins another; or start with a larger "
                            "--context",
                            tokens(prompt.ids.size()), wiring_.context));
  TRY(ChatOutput chat,
      ChatOutput::create(wiring_.tokenizer, wiring_.session.setup(),
                         wiring_.show_reasoning ? write_to_standard_error : nullptr,
                         style_of_standard_error() == ProgressStyle::Bar));
  std::string text;
  TRY(const GenerationResult result, answer(prompt, chat, text));
  say_how_it_ended(result, chat, prompt);
  if (result.tokens.empty() && result.reason != StopReason::StopToken) return {};
  wiring_.session.add_turn(question, chat.reasoning(), text);
  return {};
}

Result<GenerationResult> ChatLoop::answer(const text::TurnPrompt& prompt, ChatOutput& chat,
                                          std::string& text) {
  engine::GenerateRequest request = wiring_.request;
  request.max_tokens = std::min<uint64_t>(request.max_tokens, wiring_.context - prompt.ids.size());
  EventLog no_events(std::nullopt);
  RunListener listener({.engine = wiring_.engine,
                        .tokenizer = &wiring_.tokenizer,
                        .stop_tokens = wiring_.request.stop_tokens,
                        .chat = &chat,
                        .output = &output_,
                        .events = no_events,
                        .digest = nullptr,
                        .cancel = wiring_.cancel});
  Result<GenerationResult> result = timeline_.answer(prompt, request, listener, wiring_.cancel);
  listener.finish();
  text = listener.text();
  return result;
}

void ChatLoop::say_how_it_ended(const GenerationResult& result, const ChatOutput& chat,
                                const text::TurnPrompt& prompt) const {
  if (result.reason == StopReason::Interrupted) {
    if (stop_signal_name() == nullptr) return;  // nobody reads on
    write_to_standard_error(
        result.tokens.empty()
            ? "stopped before the answer began: the message is not part of the conversation\n"
            : fmt::format("stopped after {}\n", tokens(result.tokens.size())));
    return;
  }
  const bool is_full = prompt.ids.size() + result.tokens.size() >= wiring_.context;
  if (result.reason == StopReason::ContextFull ||
      (result.reason == StopReason::MaxTokens && is_full)) {
    warn(
        fmt::format("the context is full, and the answer ends here; /new begins another "
                    "conversation, and --context N makes room for {} and more",
                    tokens(wiring_.context + 1)));
    return;
  }
  warn_of_what_is_not_in_the_answer(result, chat);
}

Status ChatLoop::save(const std::string& file) {
  const auto existing = [&] {
    return our_files_.contains(file) ? Existing::Replace : Existing::Refuse;
  };
  if (timeline_.position_count() == 0)
    return fail(ErrorCode::Usage, "/save: the conversation has not begun\n  say something first");
  const std::string state_file = state_file_of(file);
  TRY(PublishedFile conversation, PublishedFile::create(file, existing()));
  TRY(PublishedFile state, PublishedFile::create(state_file, existing()));
  TRY_STATUS(conversation.append(wiring_.session.to_json()));
  // Whatever becomes of the state: it can be computed again.
  TRY_STATUS(conversation.publish());
  our_files_.insert(file);
  TRY_STATUS(timeline_.save(state, wiring_.owner));
  write_to_standard_error(fmt::format("saved to {} and, {}, to {}\n", file,
                                      tokens(timeline_.position_count()), state_file));
  return {};
}

Status ChatLoop::load(const std::string& file) {
  // The name of a file, and never standard input.
  TRY(const std::string json, read_prompt_file(file == "-" ? "./-" : file, wiring_.cancel));
  const Status loaded = wiring_.session.load_json(json);
  if (!loaded) {
    Error error = loaded.error();
    return std::unexpected(std::move(error).within(file));
  }
  our_files_.insert(file);
  timeline_.clear();
  const io::PosixStorage storage;
  const Status state =
      timeline_.load(storage, state_file_of(file), wiring_.owner, wiring_.context, wiring_.cancel);
  if (!state)
    warn(fmt::format("the conversation will be read again: {}", first_line(state.error().what)));
  write_to_standard_error(fmt::format("loaded {}, {}\n", turns(wiring_.session.turn_count()),
                                      tokens(timeline_.position_count())));
  return {};
}

std::string ChatLoop::stats() const {
  std::string text =
      fmt::format("context    {} of {}, {}\n", with_separators(timeline_.position_count()),
                  tokens(wiring_.context), turns(wiring_.session.turn_count()));
  text += fmt::format("last turn  {}\n", describe(timeline_.last_turn()));
  text += fmt::format("all turns  {}\n", describe(timeline_.all_turns()));
  if (const std::optional<uint64_t> peak = Machine().peak_resident_bytes())
    text += fmt::format("memory     {} at the peak\n", human_bytes(*peak));
  return text;
}

}  // namespace deltafin::cli
