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
  explicit ChatPreparation(ModelPreparation prepared) : model(std::move(prepared)) {}

  ModelPreparation model;
  std::unique_ptr<text::Tokenizer> tokenizer;
  ChatSetup setup{};
  engine::GenerateRequest request;  // without a prompt
  state::SnapshotOwner owner;
  uint64_t context = 0;
};

Result<ChatPreparation> prepare(const ChatCommandFlags& flags, const io::Storage& storage) {
  TRY(ModelPreparation model, ModelPreparation::create(storage, *flags.model, flags.engine));
  ChatPreparation ready(std::move(model));
  const std::string& directory = ready.model.directory();
  const checkpoint::ModelContract& contract = ready.model.contract();
  TRY(ready.context, context_of(flags.context, contract));
  TRY(const GenerationDefaults defaults, load_generation_defaults(storage, directory));
  TRY(ready.request.sampling, combine(flags.sampling, defaults, draw_seed()));
  TRY(ready.tokenizer, text::open_tokenizer(storage, directory));
  TRY(ready.setup, make_chat_setup(flags.chat, *ready.tokenizer, storage, directory));
  ready.request.max_tokens = flags.max_tokens.value_or(UINT64_MAX);
  ready.request.stop_tokens = stop_tokens(defaults, contract.eos_token_id, ready.setup.end_of_turn);
  ready.request.prefill_rows = flags.engine.prefill_rows.value_or(0);
  TRY(ready.owner, state_owner(ready.model));
  const Workload workload{
      .prompt_rows = ready.context, .kept_forks = ChatTimeline::kForks, .context = ready.context};
  TRY_STATUS(plan_memory(flags.engine, workload, ready.model));
  return ready;
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
  const io::PosixStorage storage;
  TRY(ChatPreparation ready, prepare(flags, storage));
  warn_of_unknown_fields(ready.model.contract());
  write_to_standard_error(seed_note(flags.sampling, ready.request.sampling));
  TRY(const std::unique_ptr<LoadedModel> model, LoadedModel::open(ready.model, cancel));
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
