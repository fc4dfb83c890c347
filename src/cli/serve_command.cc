#include "cli/serve_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/limits.h"
#include "cli/chat_flags.h"
#include "cli/command_line.h"
#include "cli/disk_rate.h"
#include "cli/memory_planning.h"
#include "cli/messages.h"
#include "cli/model_loading.h"
#include "cli/model_location.h"
#include "cli/progress.h"
#include "cli/prompt.h"
#include "cli/sampling.h"
#include "cli/saved_state.h"
#include "cli/serve_flags.h"
#include "cli/signals.h"
#include "cli/units.h"
#include "engine/state_directory.h"
#include "serve/ending.h"
#include "serve/engine_loop.h"
#include "serve/http/http_server.h"
#include "serve/service.h"
#include "serve/ticker.h"

namespace deltafin::cli {

namespace {

// When everything is sent and only clients that read slowly are left.
constexpr std::chrono::seconds kLastReplies{2};
// How exact time limits are.
constexpr std::chrono::milliseconds kTick{50};

// Everything that can be known before the weights are loaded.
struct ServePreparation {
  explicit ServePreparation(ModelPreparation prepared) : model(std::move(prepared)) {}

  ModelPreparation model;
  std::unique_ptr<text::Tokenizer> tokenizer;
  serve::ServiceOptions service;
  serve::HttpOptions http;
  engine::SchedulerOptions scheduler;
  std::optional<state::SnapshotOwner> owner;  // of states on disk
};

std::string model_name(const ServeFlags& flags, const std::string& directory) {
  if (flags.model_name) return *flags.model_name;
  if (*flags.model == kBundledModel) return kBundledModel;
  const std::filesystem::path path = std::filesystem::weakly_canonical(directory);
  return path.filename().empty() ? "model" : path.filename().string();
}

// What the model's template is, or why there is no chat.
Status find_chat(const ServeFlags& flags, ServePreparation& ready) {
  const Result<ChatSetup> setup =
      make_chat_setup(flags.chat, *ready.tokenizer, ready.model.storage(), ready.model.directory());
  if (!setup) {
    // A template that was named must be there; a model without one still completes text.
    if (flags.chat.chooses_template()) return std::unexpected(setup.error());
    ready.service.why_no_chat = fmt::format("this model has no chat: {}", setup.error().what);
    warn("completions only: " + first_line(setup.error().what));
    return {};
  }
  ready.service.chat_template = setup->chat_template;
  ready.service.chat_options = setup->options;
  ready.service.end_of_turn = setup->end_of_turn;
  return {};
}

void describe_model(const ServeFlags& flags, const std::optional<PlannedMemory>& memory,
                    ServePreparation& ready) {
  serve::ServedModel& model = ready.service.model;
  model.id = model_name(flags, ready.model.directory());
  model.architecture = ready.model.contract().architecture;
  model.layers = ready.model.contract().layers.size();
  model.version = version();
  if (!memory) return;
  const memory::ModelSizes& sizes = memory->sizes;
  model.trunk_bytes = sizes.trunk_bytes();
  model.trunk_bytes_of_pass = sizes.trunk_bytes_of_a_token;
  model.expert_bytes = sizes.expert_bytes;
  model.parameters_bytes = sizes.trunk_bytes() + sizes.expert_count * sizes.expert_bytes;
  model.budget_bytes = memory->budget.bytes;
  model.trunk_buffer_bytes = memory->plan.trunk_buffer_bytes;
  model.state_bytes = memory->plan.state_bytes + memory->kept_state_bytes;
  model.activation_bytes = memory->plan.activation_bytes;
}

// What clients may make us hold at worst: bodies that come in, answers that are kept, logits of
// scored prompts and of all answers.
uint64_t bytes_beside_the_engine(const ServePreparation& ready) {
  const uint64_t rows = limits::kScoredRows + ready.service.requests;
  return limits::kHttpBodyBytesOfAll + ready.service.jobs.memory_bytes +
         rows * ready.model.contract().vocab_size() * sizeof(float);
}

Result<ServePreparation> prepare(const ServeFlags& flags, const io::Storage& storage) {
  TRY(serve::HttpOptions http, flags.http_options());
  TRY(ModelPreparation model, ModelPreparation::create(storage, *flags.model, flags.engine));
  ServePreparation ready(std::move(model));
  ready.http = std::move(http);
  const std::string& directory = ready.model.directory();
  const checkpoint::ModelContract& contract = ready.model.contract();
  TRY(const uint64_t context, context_of(flags.context, contract));
  TRY(const GenerationDefaults defaults, load_generation_defaults(storage, directory));
  // A server chooses as the model's makers wish, where a request does not say; greedily where they
  // do not say either.
  SamplingFlags as_made;
  as_made.sample = defaults.temperature.has_value();
  TRY(ready.service.sampling, combine(as_made, defaults, 0));
  TRY(ready.tokenizer, text::open_tokenizer(storage, directory));
  TRY_STATUS(find_chat(flags, ready));
  ready.service.stop_tokens = stop_tokens(defaults, contract.eos_token_id, std::nullopt);
  ready.service.draw_seed = draw_seed;
  ready.service.context = context;
  ready.service.requests = static_cast<uint32_t>(flags.requests.value_or(ServeFlags::kRequests));
  ready.service.queue = static_cast<uint32_t>(flags.queue.value_or(ServeFlags::kQueue));
  ready.service.jobs.directory = flags.answers_directory();
  TRY_STATUS(flags.prepare_state_directory());
  if (flags.state_directory) {
    TRY(ready.owner, state_owner(ready.model));
  }
  const Workload workload{.prompt_rows = context,
                          .output_bytes = bytes_beside_the_engine(ready),
                          .requests = ready.service.requests,
                          .kept_sequences = ServeFlags::kKeptSequences,
                          .context = context};
  TRY(const std::optional<PlannedMemory> memory, plan_memory(flags.engine, workload, ready.model));
  ready.scheduler = {.sequences = ready.service.requests,
                     .context = context,
                     .kept_state_bytes = memory ? memory->kept_state_bytes : 0};
  describe_model(flags, memory, ready);
  return ready;
}

Result<engine::StateDirectory> open_states(const ServeFlags& flags, const io::Storage& storage,
                                           const state::SnapshotOwner& owner,
                                           const engine::Engine& engine) {
  return engine::StateDirectory::open(
      storage, flags.states_directory(), owner, engine.state_layout(),
      {.budget_bytes = flags.state_bytes.value_or(ServeFlags::kStateBytes), .tell = warn});
}

// Where clients find us: the one line on standard output.
Status print_address(const std::string& host, uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  TRY_STATUS(
      print(fmt::format("listening on http://{}:{}/\n", is_ipv6 ? "[" + host + "]" : host, port)));
  return {};
}

void say_what_may_end(uint64_t count, uint64_t drain_seconds) {
  write_to_standard_error(
      fmt::format("ending: {} request{} may take {} s more; again to stop at "
                  "once\n",
                  count, count == 1 ? "" : "s", drain_seconds));
}

}  // namespace

Result<int> serve_command(const std::vector<std::string>& arguments, CancelToken& cancel) {
  ServeFlags flags;
  CommandLine line("serve MODEL [options]",
                   "Serves a model over HTTP, with OpenAI's API and a page for people "
                   "(docs/api.md). It listens at once and answers when the model is loaded. "
                   "Ctrl-C or SIGTERM lets running requests end, for a while.");
  flags.declare(line);
  TRY(const CommandLine::Parsed parsed, line.parse(arguments));
  if (parsed == CommandLine::Parsed::Help) return print(line.help());
  TRY_STATUS(required_model(flags.model, "serve"));
  const io::PosixStorage storage;
  TRY(ServePreparation ready, prepare(flags, storage));
  warn_of_unknown_fields(ready.model.contract());

  const SystemClock clock;
  serve::EngineLoop loop(clock);
  serve::Service service(std::move(ready.service), *ready.tokenizer, *ready.model.options.kernels,
                         loop, clock);
  TRY(const std::unique_ptr<serve::HttpServer> server,
      serve::HttpServer::start(ready.http, flags.insecure,
                               [&](serve::HttpRequest request, serve::Reply reply) {
                                 service.handle(std::move(request), std::move(reply));
                               }));
  service.watch(server.get());
  TRY_STATUS(print_address(ready.http.host, server->port()));
  if (const std::optional<double> rate = measure_disk(ready.model.directory()))
    service.note_disk(*rate);
  TRY(const std::unique_ptr<LoadedModel> model,
      LoadedModel::open(ready.model, cancel,
                        [&](double fraction) { loop.note_loading(fraction); }));
  std::optional<engine::StateDirectory> states;
  if (ready.owner) {
    TRY(states, open_states(flags, storage, *ready.owner, model->engine()));
    ready.scheduler.state_directory = &*states;
  }
  write_to_standard_error("ready\n");
  {
    const uint64_t drain_seconds = flags.drain_seconds.value_or(ServeFlags::kDrainSeconds);
    serve::Ending ending(loop, clock, std::chrono::seconds(drain_seconds), cancel,
                         [&](uint64_t left) { say_what_may_end(left, drain_seconds); });
    TRY(const std::unique_ptr<serve::Ticker> ticker, serve::Ticker::start(kTick, [&] {
          service.tick();
          ending.tick();
        }));
    loop.run(model->engine(), ready.scheduler);
  }
  service.tick();
  server->drain(kLastReplies);
  return 0;
}

}  // namespace deltafin::cli
