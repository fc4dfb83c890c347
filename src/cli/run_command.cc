#include "cli/run_command.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "audit/digest.h"
#include "base/machine.h"
#include "cli/chat_flags.h"
#include "cli/chat_output.h"
#include "cli/command_line.h"
#include "cli/disk_rate.h"
#include "cli/events.h"
#include "cli/memory_planning.h"
#include "cli/messages.h"
#include "cli/model_loading.h"
#include "cli/model_location.h"
#include "cli/prompt.h"
#include "cli/route_trace.h"
#include "cli/run_listener.h"
#include "cli/run_report.h"
#include "cli/sampling.h"
#include "cli/saved_state.h"
#include "cli/signals.h"
#include "cli/standard_output.h"
#include "cli/units.h"
#include "serve/api/sampling_json.h"

namespace deltafin::cli {

namespace {

constexpr uint64_t kMaxTokens = 256;

struct RunFlags {
  std::optional<std::string> model;
  PromptFlags prompt;
  ChatFlags chat;
  StateFlags state;
  SamplingFlags sampling;
  EngineFlags engine;
  std::optional<uint64_t> max_tokens;
  bool ignore_eos = false;
  std::optional<std::string> events, route_trace;
  bool force = false;
  bool stats = false;
  bool logits_digest = false;
  bool json = false;

  void declare(CommandLine& line);
  Status check() const;
};

void RunFlags::declare(CommandLine& line) {
  declare_model(line, model);
  prompt.declare(line);
  chat.declare(line);
  state.declare(line);
  line.group("length");
  line.flag(
      "--max-tokens", "N",
      fmt::format("generate at most N tokens (default: {}); 0 only reads the prompt", kMaxTokens),
      integer_into(max_tokens, 0, UINT64_MAX));
  line.toggle("--ignore-eos", "do not stop at the model's end-of-text tokens", ignore_eos);
  sampling.declare(line);
  engine.declare(line);
  line.group("output");
  line.toggle("--stats", "print speed, bytes read and memory to standard error at the end", stats);
  line.toggle("--json", "print one JSON object at the end instead of the text as it comes", json);
  line.toggle(
      "--logits-digest",
      "print the SHA-256 of the logits that chose the tokens: equal on every machine for equal "
      "tokens",
      logits_digest);
  line.flag("--events", "FILE", "write what happens to FILE as JSON lines, each at once",
            text_into(events));
  line.flag("--route-trace", "FILE",
            "write which experts each token was routed to, layer by layer, to FILE as JSON lines",
            text_into(route_trace));
  line.toggle("--force", "let --events, --route-trace and --save-state replace a file", force);
  line.example("deltafin run demo --prompt \"The capital of France is\"",
               "the bundled model continues the sentence");
  line.example("deltafin run ~/models/kimi-k3 --prompt-file question.txt --sample --seed 7 --stats",
               "a checkpoint directory as downloaded; random choice that can be repeated");
  line.example("deltafin run demo --prompt-file book.txt --max-tokens 0 --save-state book.state",
               "reads the book once; --load-state book.state --prompt \"...\" asks about it");
  line.example(
      "deltafin run ~/models/kimi-k3 --chat --effort low --prompt \"Why is the sky blue?\"",
      "an answer instead of a continuation; --show-reasoning shows how it came about");
  line.example("echo -n \"Once upon a time\" | deltafin run demo --prompt-file - --json | jq .text",
               "from a pipe, for a program");
}

Status RunFlags::check() const {
  TRY_STATUS(required_model(model, "run"));
  // A loaded state can go on by itself.
  if (prompt.is_given() || !state.load) TRY_STATUS(prompt.check());
  TRY_STATUS(chat.check(prompt, state));
  if (events == "-" || events == "/dev/stdout")
    return fail(ErrorCode::Usage,
                "--events: standard output is for the text alone\n  name a file, or /dev/stderr");
  return {};
}

CommandLine run_line() {
  return {
      "run MODEL (--prompt TEXT | --prompt-file F | --ids LIST | --load-state F) [options]",
      "Continues a prompt. The text goes to standard output as it is generated, everything else to "
      "standard error. Ctrl-C stops and keeps what there is."};
}

// Everything that can be known before the weights are loaded.
struct RunPreparation {
  explicit RunPreparation(ModelPreparation prepared) : model(std::move(prepared)) {}

  ModelPreparation model;
  std::unique_ptr<text::Tokenizer> tokenizer;  // null: only ids
  std::optional<ChatPrompt> chat;              // empty without --chat
  engine::GenerateRequest request;             // the prompt: what the flags give
  std::optional<PlannedMemory> memory;         // empty where nobody knows the memory
  std::optional<state::SnapshotOwner> owner;   // where states are loaded or saved
  std::optional<StateReport> loaded;
};

// The tokenizer of the directory. Without text to encode a run goes on without one.
Result<std::unique_ptr<text::Tokenizer>> find_tokenizer(const io::Storage& storage,
                                                        const std::string& directory,
                                                        const PromptFlags& prompt) {
  Result<std::unique_ptr<text::Tokenizer>> tokenizer = open_prompt_tokenizer(storage, directory);
  if (tokenizer || prompt.text || prompt.file) return tokenizer;
  warn("the output is token ids: " + first_line(tokenizer.error().what));
  return nullptr;
}

Result<RunPreparation> prepare(const RunFlags& flags, const io::Storage& storage,
                               const CancelToken& cancel) {
  TRY(ModelPreparation model, ModelPreparation::create(storage, *flags.model, flags.engine));
  RunPreparation ready(std::move(model));
  const std::string& directory = ready.model.directory();
  const checkpoint::ModelContract& contract = ready.model.contract();
  TRY(const GenerationDefaults defaults, load_generation_defaults(storage, directory));
  TRY(ready.request.sampling, combine(flags.sampling, defaults, draw_seed()));
  TRY(const std::string text, read_prompt_text(flags.prompt, cancel));
  TRY(ready.tokenizer, find_tokenizer(storage, directory, flags.prompt));
  if (flags.chat.chat) {
    TRY(ready.chat, make_chat_prompt(flags.chat, text, *ready.tokenizer, storage, directory));
    TRY_STATUS(check_prompt_tokens("--chat", ready.chat->ids, contract));
    ready.request.prompt = ready.chat->ids;
  } else if (flags.prompt.is_given()) {
    TRY(ready.request.prompt, prompt_tokens(flags.prompt, text, ready.tokenizer.get(), contract));
  }
  ready.request.max_tokens = flags.max_tokens.value_or(kMaxTokens);
  if (!flags.ignore_eos) {
    ready.request.stop_tokens =
        stop_tokens(defaults, contract.eos_token_id,
                    ready.chat ? std::optional(ready.chat->end_of_turn) : std::nullopt);
  }
  ready.request.prefill_rows = flags.engine.prefill_rows.value_or(0);
  if (flags.state.is_given()) {
    TRY(ready.owner, state_owner(ready.model));
  }
  if (flags.state.load) {
    TRY(ready.loaded,
        check_state(storage, *flags.state.load, *ready.owner, ready.request.prompt.size()));
  }
  return ready;
}

// Plans for what is to be done. Opens the checkpoint, so that this may fail as loading may.
Status plan(const RunFlags& flags, RunPreparation& ready) {
  Workload workload{.prompt_rows = ready.request.prompt.size(),
                    .answer_rows = ready.request.max_tokens};
  if (ready.loaded) {
    workload.loaded_positions = ready.loaded->counts.tokens;
    workload.prompt_rows += ready.loaded->counts.waiting;
  }
  TRY(ready.memory, plan_memory(flags.engine, workload, ready.model));
  return {};
}

nlohmann::ordered_json run_start_event(const RunFlags& flags, const RunPreparation& ready) {
  const engine::GenerateRequest& request = ready.request;
  return {
      {"event", "run_start"},
      {"version", version()},
      {"model",
       {{"directory", ready.model.directory()},
        {"architecture", ready.model.contract().architecture}}},
      {"prompt_ids", request.prompt},
      {"loaded_state", to_json(ready.loaded)},
      {"options",
       {{"max_tokens", request.max_tokens},
        {"ignore_eos", flags.ignore_eos},
        {"parse_special", flags.prompt.parse_special},
        {"threads", ready.model.options.thread_count},
        {"isa", ready.model.options.kernels->name},
        {"expert_cache_bytes", ready.model.options.expert_cache_bytes},
        {"prefill_rows", request.prefill_rows},
        {"memory", memory_json(ready.memory)}}},
      {"sampling", serve::sampling_json(request.sampling)},
      {"stop_ids", request.stop_tokens},
  };
}

// Writes nowhere without a path.
Result<EventLog> open_log(const char* flag, const std::optional<std::string>& path, bool force,
                          const char* schema) {
  if (!path) return EventLog(std::nullopt, schema);
  Result<GrowingFile> file =
      GrowingFile::create(*path, force ? Existing::Replace : Existing::Refuse);
  if (!file) return std::unexpected(std::move(file).error().within(flag));
  return EventLog(std::move(*file), schema);
}

Result<std::optional<PublishedFile>> open_state(const RunFlags& flags) {
  if (!flags.state.save) return std::nullopt;
  Result<PublishedFile> file =
      PublishedFile::create(*flags.state.save, flags.force ? Existing::Replace : Existing::Refuse);
  if (!file) return std::unexpected(std::move(file).error().within("--save-state"));
  return std::move(*file);
}

// The sequence to go on with; `request` is then what it is given.
Result<engine::Sequence> begin_sequence(const RunFlags& flags, const RunPreparation& ready,
                                        const engine::Engine& engine, const CancelToken& cancel,
                                        engine::GenerateRequest& request) {
  if (!flags.state.load) return engine.new_sequence();
  TRY(engine::Sequence sequence, load_state(ready.model.storage(), *flags.state.load, *ready.owner,
                                            engine.state_layout(), cancel, request));
  write_to_standard_error(fmt::format(
      "loaded {} tokens from {}\n", with_separators(sequence.position_count()), *flags.state.load));
  return sequence;
}

// Empty when nothing is to be saved, or there is nothing to save.
Result<std::optional<StateReport>> end_sequence(std::optional<PublishedFile>& file,
                                                const RunPreparation& ready,
                                                const engine::Sequence& sequence,
                                                const engine::Continuation& next) {
  if (!file) return std::nullopt;
  if (sequence.position_count() == 0) {
    warn(fmt::format("--save-state: {} is not written: no token has been read", file->path()));
    return std::nullopt;
  }
  Result<StateReport> saved = save_state(*file, *ready.owner, sequence, next);
  if (!saved) return std::unexpected(std::move(saved).error().within("--save-state"));
  const StateReport& report = *saved;
  std::string text =
      fmt::format("saved {} tokens to {}", with_separators(report.counts.tokens), report.file);
  if (report.counts.waiting > 1)
    text += fmt::format("; {} more wait in it to be read", with_separators(report.counts.waiting));
  write_to_standard_error(text + "\n");
  return report;
}

// Empty without --chat.
Result<std::optional<ChatOutput>> open_chat_output(const RunFlags& flags,
                                                   const RunPreparation& ready) {
  if (!ready.chat) return std::nullopt;
  TRY(ChatOutput output,
      ChatOutput::create(*ready.tokenizer, *ready.chat,
                         flags.chat.show_reasoning ? write_to_standard_error : nullptr,
                         style_of_standard_error() == ProgressStyle::Bar));
  return std::optional(std::move(output));
}

RunReport make_report(const RunPreparation& ready, LoadedModel& model,
                      const engine::Sequence& sequence, const RunListener& listener,
                      engine::GenerationResult result) {
  engine::Engine& engine = model.engine();
  RunReport report;
  report.directory = ready.model.directory();
  report.architecture = ready.model.contract().architecture;
  report.prompt_ids = ready.request.prompt;
  report.loaded = ready.loaded;
  if (ready.tokenizer) report.text = listener.text();
  report.stop_token = listener.stop_token();
  report.result = std::move(result);
  report.sampling = ready.request.sampling;
  report.load_time = model.load_time();
  report.after_prefill = listener.after_prefill();
  report.at_end = engine.snapshot();
  report.reads = model.reader().reader->snapshot();
  report.reader = model.reader().reader->name();
  report.why_not_uring = model.reader().why_not_uring;
  report.isa = engine.kernels().name;
  report.thread_count = engine.thread_count();
  report.memory = ready.memory;
  report.position_count = sequence.position_count();
  report.state_fixed_bytes = engine.state_layout().fixed_bytes();
  report.state_bytes_per_position = engine.state_layout().bytes_per_position();
  return report;
}

void say_what_stopped_it(const RunReport& report) {
  const char* signal = stop_signal_name();
  if (report.result.reason != engine::StopReason::Interrupted || signal == nullptr) return;
  const size_t count = report.result.tokens.size();
  write_to_standard_error(
      fmt::format("stopped by {} after {} {}\n", signal, count, count == 1 ? "token" : "tokens"));
}

// Loads, generates and prints. Everything that fails in here is in the events too.
Result<int> execute(const RunFlags& flags, RunPreparation& ready, EventLog& events,
                    EventLog& routes, std::optional<PublishedFile>& state_file,
                    CancelToken& cancel) {
  Status planned = plan(flags, ready);
  events.write(run_start_event(flags, ready));
  if (!planned) return std::unexpected(std::move(planned).error());
  TRY_STATUS(events.status());
  TRY(const std::unique_ptr<LoadedModel> model, LoadedModel::open(ready.model, cancel));
  engine::GenerateRequest request = ready.request;
  TRY(engine::Sequence sequence, begin_sequence(flags, ready, model->engine(), cancel, request));
  std::optional<RouteTrace> route_trace;
  if (flags.route_trace) {
    route_trace.emplace(routes, ready.model.contract());
    model->engine().set_observer(&*route_trace);
  }
  TRY(std::optional<ChatOutput> chat, open_chat_output(flags, ready));
  StandardOutput output;
  audit::LogitsDigest digest;
  RunListener listener({.engine = model->engine(),
                        .tokenizer = ready.tokenizer.get(),
                        .stop_tokens = ready.request.stop_tokens,
                        .chat = chat ? &*chat : nullptr,
                        .output = flags.json ? nullptr : &output,
                        .events = events,
                        .digest = flags.logits_digest ? &digest : nullptr,
                        .cancel = cancel});
  Result<engine::GenerationResult> result =
      engine::generate(model->engine(), sequence, request, listener, cancel);
  listener.finish();
  if (!result) {
    TRY_STATUS(output.status());
    return std::unexpected(std::move(result).error());
  }
  // Whatever became of the text: the state took longer to compute.
  TRY(std::optional<StateReport> saved, end_sequence(state_file, ready, sequence, result->next));
  TRY_STATUS(output.status());

  RunReport report = make_report(ready, *model, sequence, listener, std::move(*result));
  report.prefill_count = request.prompt.size();
  if (flags.stats) report.disk_roof = measure_disk(ready.model.directory());
  report.peak_resident_bytes = Machine().peak_resident_bytes();  // what was just measured too
  report.saved = std::move(saved);
  if (chat) {
    report.chat =
        ChatReport{std::string(ready.chat->chat_template->name), chat->reasoning(), chat->calls()};
    warn_of_what_is_not_in_the_answer(report.result, *chat);
  }
  if (flags.logits_digest)
    report.digest = LogitsDigestLine{.sha256 = digest.hex(), .row_count = digest.row_count()};
  events.write(run_end_event(report, listener.elapsed()));
  if (flags.json) output.write(to_document(to_json(report)));
  say_what_stopped_it(report);
  if (flags.stats) write_to_standard_error(summary(report));
  if (report.digest) write_to_standard_error(describe(*report.digest) + "\n");
  TRY_STATUS(output.status());
  TRY_STATUS(events.status());
  TRY_STATUS(routes.status());
  return stop_signal_name() != nullptr && report.result.reason == engine::StopReason::Interrupted
             ? exit_code(ErrorCode::Cancelled)
             : 0;
}

}  // namespace

Result<int> run_command(const std::vector<std::string>& arguments, CancelToken& cancel) {
  RunFlags flags;
  CommandLine line = run_line();
  flags.declare(line);
  TRY(const CommandLine::Parsed parsed, line.parse(arguments));
  if (parsed == CommandLine::Parsed::Help) return print(line.help());
  TRY_STATUS(flags.check());
  const io::PosixStorage storage;
  TRY(RunPreparation ready, prepare(flags, storage, cancel));
  warn_of_unknown_fields(ready.model.contract());
  write_to_standard_error(seed_note(flags.sampling, ready.request.sampling));
  TRY(std::optional<PublishedFile> state_file, open_state(flags));
  TRY(EventLog events, open_log("--events", flags.events, flags.force, kEventSchema));
  TRY(EventLog routes, open_log("--route-trace", flags.route_trace, flags.force, kRouteSchema));
  Result<int> code = execute(flags, ready, events, routes, state_file, cancel);
  if (!code) events.write(run_error_event(code.error()));
  return code;
}

}  // namespace deltafin::cli
