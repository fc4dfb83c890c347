#include "cli/chat_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/chat_flags.h"
#include "cli/chat_loop.h"
#include "cli/command_line.h"
#include "cli/memory_planning.h"
#include "cli/messages.h"
#include "cli/model_loading.h"
#include "cli/model_location.h"
#include "cli/progress.h"
#include "cli/prompt.h"
#include "cli/sampling.h"
#include "cli/saved_state.h"

namespace deltafin::cli {

namespace {

struct ChatCommandFlags {
  std::optional<std::string> model;
  ChatFlags chat;
  std::optional<uint64_t> context, max_tokens;
  SamplingFlags sampling;
  EngineFlags engine;

  void declare(CommandLine& line);
};

void ChatCommandFlags::declare(CommandLine& line) {
  declare_model(line, model);
  line.group("chat");
  chat.declare_for_chat(line);
  line.group("length");
  line.flag("--context", "N",
            fmt::format("tokens of the whole conversation at most, for which memory is planned "
                        "(default: {}, or what the model can)",
                        kDefaultContext),
            integer_into(context, 2, UINT64_MAX));
  line.flag("--max-tokens", "N",
            "tokens of one answer and its reasoning at most (default: what the context leaves)",
            integer_into(max_tokens, 1, UINT64_MAX));
  sampling.declare(line);
  engine.declare(line);
  line.example("deltafin chat demo", "talks with the bundled model; deltafin demo does the same");
  line.example("deltafin ~/models/kimi-k3 --system \"Be brief.\" --effort low --show-reasoning",
               "any checkpoint directory, with the flags of run --chat");
  line.example("printf 'Who are you?\\nSince when?\\n' | deltafin chat demo",
               "without a terminal, a message a line");
}

// Everything that can be known before the weights are loaded.
struct ChatPreparation {
  std::string directory;
  checkpoint::ModelContract contract;
  std::unique_ptr<text::Tokenizer> tokenizer;
  ChatSetup setup{};
  engine::EngineOptions options;
  ReaderChoice reader;
  engine::GenerateRequest request;  // without a prompt
  state::SnapshotOwner owner;
  uint64_t context = 0;
};

Result<ChatPreparation> prepare(const ChatCommandFlags& flags) {
  const io::PosixStorage storage;
  ChatPreparation ready;
  TRY(ready.directory, find_model(storage, *flags.model));
  TRY(ready.contract, read_contract(storage, ready.directory));
  TRY(ready.context, context_of(flags.context, ready.contract));
  TRY(ready.options, engine_options(flags.engine));
  TRY(ready.reader, reader_choice(flags.engine));
  TRY(const GenerationDefaults defaults, load_generation_defaults(storage, ready.directory));
  TRY(ready.request.sampling, combine(flags.sampling, defaults, draw_seed()));
  TRY(ready.tokenizer, text::open_tokenizer(storage, ready.directory));
  TRY(ready.setup, make_chat_setup(flags.chat, *ready.tokenizer, storage, ready.directory));
  ready.request.max_tokens = flags.max_tokens.value_or(UINT64_MAX);
  ready.request.stop_tokens =
      stop_tokens(defaults, ready.contract.eos_token_id, ready.setup.end_of_turn);
  ready.request.prefill_rows = flags.engine.prefill_rows.value_or(0);
  TRY(ready.owner, state_owner(storage, ready.directory));
  const Workload workload{
      .prompt_rows = ready.context, .kept_forks = ChatTimeline::kForks, .context = ready.context};
  TRY_STATUS(plan_memory(flags.engine, ready.directory, workload, ready.options));
  return ready;
}

void say_what_is_worth_knowing(const ChatCommandFlags& flags, const ChatPreparation& ready) {
  const std::string warning = unknown_fields_warning(ready.contract);
  if (!warning.empty()) warn(warning);
  write_to_standard_error(seed_note(flags.sampling, ready.request.sampling));
}

std::unique_ptr<MessageSource> open_source(const CancelToken& cancel) {
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  if (!is_terminal) return open_line_source(STDIN_FILENO, cancel);
  write_to_standard_error("Ctrl-C stops an answer, Ctrl-D leaves, /help says more.\n");
  return open_terminal_source(chat_history_file(), cancel);
}

}  // namespace

Result<int> chat_command(const std::vector<std::string>& arguments, CancelToken& cancel) {
  ChatCommandFlags flags;
  CommandLine line("chat MODEL [options]",
                   "Talks with a model; deltafin MODEL does the same. The answers go to standard "
                   "output, everything else to standard error. Ctrl-C stops an answer and keeps "
                   "the conversation; Ctrl-D leaves. /help lists the commands of a conversation.");
  flags.declare(line);
  TRY(const CommandLine::Parsed parsed, line.parse(arguments));
  if (parsed == CommandLine::Parsed::Help) return print(line.help());
  TRY_STATUS(required_model(flags.model, "chat"));
  TRY(ChatPreparation ready, prepare(flags));
  say_what_is_worth_knowing(flags, ready);
  TRY(const std::unique_ptr<LoadedModel> model,
      LoadedModel::open(ready.directory, ready.options, ready.reader, cancel));
  ChatSession session(*ready.tokenizer, ready.setup, beginning_of_chat(flags.chat));
  const std::unique_ptr<MessageSource> source = open_source(cancel);
  ChatLoop loop({.engine = model->engine(),
                 .tokenizer = *ready.tokenizer,
                 .session = session,
                 .source = *source,
                 .owner = ready.owner,
                 .request = ready.request,
                 .context = ready.context,
                 .show_reasoning = flags.chat.show_reasoning,
                 .cancel = cancel});
  return loop.run();
}

}  // namespace deltafin::cli
