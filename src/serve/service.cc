#include "serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "serve/api/json_text.h"
#include "serve/api/tokenize_request.h"
#include "serve/page/page.h"
#include "text/chat/turn_prompt.h"

namespace deltafin::serve {

namespace {

using nlohmann::ordered_json;

constexpr size_t kRequestIdBytes = 128;

void send(Reply& reply, const ApiError& error, HeaderList more = {}) {
  reply.send(error.status, kJson, to_json(error), std::move(more));
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

ApiError not_found(std::string message) {
  return {.status = 404,
          .message = std::move(message),
          .type = "invalid_request_error",
          .code = "not_found"};
}

ApiError bad_request(std::string param, std::string message, std::string code = {}) {
  return {.status = 400,
          .message = std::move(message),
          .type = "invalid_request_error",
          .param = std::move(param),
          .code = std::move(code)};
}

// What a client calls its request; empty when it does not say.
ApiResult<std::string> request_id(const HttpRequest& request) {
  const std::string* id = request.header("x-request-id");
  if (id == nullptr || id->empty()) return std::string();
  const bool is_plain = id->size() <= kRequestIdBytes && std::ranges::all_of(*id, [](char c) {
                          return c > ' ' && c < 0x7F && c != '/';
                        });
  if (is_plain) return *id;
  return std::unexpected(
      bad_request("X-Request-Id", fmt::format("the header X-Request-Id must be 1 to {} printable "
                                              "ASCII characters without spaces and slashes",
                                              kRequestIdBytes)));
}

// "?after=12" -> 12; 0 when it does not say.
size_t events_seen(std::string_view query) {
  constexpr std::string_view kName = "after=";
  const size_t at = query.find(kName);
  size_t seen = 0;
  if (at == std::string_view::npos) return seen;
  const std::string_view digits = query.substr(at + kName.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), seen);
  return seen;
}

template <class T>
void replace_missing(std::optional<T>& value, const std::optional<T>& fallback) {
  if (!value) value = fallback;
}

// Errors: 400, where a prompt and its answer do not fit into the context, or an echo would report
// more than anybody wants to hold.
ApiResult<void> check_size(const GenerationSetup& setup, std::optional<uint64_t> max_tokens,
                           uint64_t context) {
  uint64_t prompt_tokens = 0;
  for (const std::vector<TokenId>& prompt : setup.prompts) {
    prompt_tokens += prompt.size();
    const uint64_t room = context - std::min<uint64_t>(context, prompt.size());
    if (room > 0 && max_tokens.value_or(0) <= room) continue;
    const std::string left = room > 0 ? fmt::format("{} tokens", room) : "no room";
    return std::unexpected(bad_request(
        room > 0         ? "max_tokens"
        : setup.channels ? "messages"
                         : "prompt",
        fmt::format(
            "the prompt has {} tokens, and a context of {} leaves {} for the answer{}\n  ask "
            "for less, or start the server with a larger --context",
            prompt.size(), context, left,
            room > 0 ? fmt::format(", but {} are asked for", *max_tokens) : ""),
        "context_length_exceeded"));
  }
  if (!setup.echo || !setup.logprobs) return {};
  const uint64_t echoed = prompt_tokens * setup.answers * (1 + *setup.logprobs);
  if (echoed <= limits::kEchoedLogprobs) return {};
  return std::unexpected(bad_request(
      "logprobs",
      fmt::format(
          "echo would report {} log-probabilities of prompt tokens, and one answer may have "
          "{}\n  send fewer prompts at a time, or ask for fewer alternatives",
          echoed, limits::kEchoedLogprobs),
      "too_many_logprobs"));
}

}  // namespace

Service::Service(ServiceOptions options, const text::Tokenizer& tokenizer,
                 const numerics::Kernels& kernels, EngineLoop& loop, const Clock& clock)
    : options_(std::move(options)),
      tokenizer_(tokenizer),
      kernels_(kernels),
      loop_(loop),
      clock_(clock),
      jobs_(options_.jobs, clock),
      started_(unix_seconds()),
      tag_(options_.draw_seed() & 0xFFFFFF),
      started_at_(clock.now()) {}

void Service::handle(HttpRequest request, Reply reply) {
  using Call = void (Service::*)(const HttpRequest&, Reply);
  struct Route {
    std::string_view path, method;
    Call call;
    const char* allowed = "POST";
  };
  static constexpr Route kRoutes[] = {
      {"/v1/chat/completions", "POST", &Service::chat},
      {"/v1/completions", "POST", &Service::complete},
      {"/v1/tokenize", "POST", &Service::tokenize},
      {"/v1/detokenize", "POST", &Service::detokenize},
      {"/v1/models", "GET", &Service::models, "GET, HEAD"},
      {"/health", "GET", &Service::health, "GET, HEAD"},
      {"/status", "GET", &Service::status, "GET, HEAD"},
      {"/metrics", "GET", &Service::metrics, "GET, HEAD"},
      {"/", "GET", &Service::page, "GET, HEAD"},
  };
  constexpr std::string_view kRequests = "/v1/requests/", kCancel = "/cancel";
  const char* allowed = nullptr;
  for (const Route& route : kRoutes) {
    if (route.path != request.path) continue;
    // Of HEAD the transport leaves the body out.
    if (route.method == (request.method == "HEAD" ? "GET" : std::string_view(request.method)))
      return (this->*route.call)(request, std::move(reply));
    allowed = route.allowed;
  }
  if (request.path.starts_with(kRequests)) {
    std::string id = request.path.substr(kRequests.size());
    const bool cancels = id.ends_with(kCancel);
    if (cancels) id.resize(id.size() - kCancel.size());
    allowed = cancels ? "POST" : "GET";
    if (request.method == allowed)
      return cancels ? cancel(id, std::move(reply)) : reattach(id, request, std::move(reply));
  }
  if (allowed == nullptr)
    return send(reply, not_found(fmt::format("there is no {}\n  docs/api.md lists the routes, GET "
                                             "/ is a page for people",
                                             request.path)));
  send(reply,
       {.status = 405,
        .message = fmt::format("{} takes {}, found {}", request.path, allowed, request.method),
        .type = "invalid_request_error",
        .code = "method_not_allowed"},
       {{"Allow", allowed}});
}

// --- Generation.

ApiDefaults Service::defaults() {
  return {.model_id = options_.model.id,
          .sampling = options_.sampling,
          .drawn_seed = options_.draw_seed(),
          .vocab_size = tokenizer_.vocabulary_size(),
          .chat_template = options_.chat_template};
}

// Whether one more request can be taken. Errors: 503 while the model loads and when the server
// ends, 429 when the queue is full.
ApiResult<void> Service::admit() const {
  const EngineStatus status = loop_.status();
  if (status.state == ServerState::Loading)
    return std::unexpected(ApiError{.status = 503,
                                    .message = fmt::format("the model is loading, {:.0f} % are "
                                                           "there\n  GET /health says when it is "
                                                           "ready",
                                                           100 * status.loading_fraction),
                                    .type = "server_error",
                                    .code = "loading"});
  if (status.state == ServerState::Draining)
    return std::unexpected(ApiError{.status = 503,
                                    .message = "the server is ending and takes no new requests",
                                    .type = "server_error",
                                    .code = "draining"});
  if (jobs_.open_count() >= options_.requests + options_.queue)
    return std::unexpected(
        ApiError{.status = 429,
                 .message = fmt::format("{} requests are running and {} wait, which is all that "
                                        "--requests and --queue allow\n  try again later",
                                        options_.requests, options_.queue),
                 .type = "rate_limit_error",
                 .code = "queue_full"});
  return {};
}

// What was parsed is neither empty nor outside the vocabulary.
ApiResult<std::vector<TokenId>> Service::prompt_ids(const CompletionPrompt& prompt) const {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) return *ids;
  Result<std::vector<TokenId>> encoded =
      tokenizer_.encode(std::get<std::string>(prompt), text::SpecialTokens::AsText);
  if (!encoded) return std::unexpected(bad_request("prompt", encoded.error().what));
  return *std::move(encoded);
}

// Everything but the prompts.
ApiResult<GenerationSetup> Service::setup_of(const GenerationFields& fields, bool is_chat) {
  Result<text::StopStrings> stops = text::StopStrings::create(fields.stop);
  if (!stops) return std::unexpected(bad_request("stop", stops.error().what));
  return GenerationSetup{
      .head = {.id = fmt::format("{}-{:x}{:06x}{:06x}", is_chat ? "chatcmpl" : "cmpl", started_,
                                 tag_, next_id_.fetch_add(1)),
               .created = unix_seconds(),
               .model = options_.model.id,
               .sampling = fields.sampling},
      .channels = {},
      .prompts = {},
      .answers = fields.answers,
      .stop_tokens = options_.stop_tokens,
      .stops = *std::move(stops),
      .include_usage = fields.include_usage,
      .logprobs = fields.logprobs,
      .timeout = fields.timeout};
}

void Service::complete(const HttpRequest& request, Reply reply) {
  if (const ApiResult<void> admitted = admit(); !admitted)
    return send(reply, admitted.error(), {{"Retry-After", "1"}});
  const ApiResult<CompletionRequest> parsed = parse_completion_request(request.body, defaults());
  if (!parsed) return send(reply, parsed.error());
  ApiResult<GenerationSetup> setup = setup_of(*parsed, false);
  if (!setup) return send(reply, setup.error());
  setup->echo = parsed->echo;
  for (const CompletionPrompt& prompt : parsed->prompts) {
    ApiResult<std::vector<TokenId>> ids = prompt_ids(prompt);
    if (!ids) return send(reply, ids.error());
    setup->prompts.push_back(*std::move(ids));
  }
  start(request, std::move(reply), *parsed, *std::move(setup), {});
}

void Service::chat(const HttpRequest& request, Reply reply) {
  if (const ApiResult<void> admitted = admit(); !admitted)
    return send(reply, admitted.error(), {{"Retry-After", "1"}});
  if (options_.chat_template == nullptr)
    return send(reply, bad_request("messages", options_.why_no_chat, "no_chat_template"));
  ApiResult<ChatRequest> parsed = parse_chat_request(request.body, defaults());
  if (!parsed) return send(reply, parsed.error());
  text::ChatOptions& options = parsed->options;
  replace_missing(options.thinking, options_.chat_options.thinking);
  replace_missing(options.effort, options_.chat_options.effort);
  Result<text::TurnPrompt> prompt =
      text::make_turn_prompt(*options_.chat_template, options, tokenizer_, parsed->conversation);
  if (!prompt) return send(reply, to_api_error(prompt.error()));
  ApiResult<GenerationSetup> setup = setup_of(*parsed, true);
  if (!setup) return send(reply, setup.error());
  setup->channels = {.format = options_.chat_template->channels,
                     .start = options_.chat_template->start(options),
                     .tools = parsed->conversation.tools};
  if (options_.end_of_turn) setup->stop_tokens.push_back(*options_.end_of_turn);
  const std::vector<size_t> borders = {prompt->lasting};
  setup->prompts.push_back(std::move(prompt->ids));
  start(request, std::move(reply), *parsed, *std::move(setup), borders);
}

void Service::start(const HttpRequest& request, Reply reply, const GenerationFields& fields,
                    GenerationSetup setup, std::vector<size_t> borders) {
  if (const ApiResult<void> fits = check_size(setup, fields.max_tokens, options_.context); !fits)
    return send(reply, fits.error());
  ApiResult<std::string> named = request_id(request);
  if (!named) return send(reply, named.error());
  const IdFrom id_from = named->empty() ? IdFrom::Server : IdFrom::Client;
  const std::string id = id_from == IdFrom::Server ? setup.head.id : *named;
  const std::shared_ptr<Job> job =
      jobs_.create(id, id_from, fields.stream ? AnswerForm::Stream : AnswerForm::Whole);
  if (job == nullptr)
    return send(reply, {.status = 409,
                        .message = fmt::format("there is a request {} already\n  GET "
                                               "/v1/requests/{} has its answer; use another "
                                               "X-Request-Id for another request",
                                               id, id),
                        .type = "invalid_request_error",
                        .param = "X-Request-Id",
                        .code = "duplicate_request"});
  std::vector<engine::ScheduledRequest> requests;
  for (const std::vector<TokenId>& prompt : setup.prompts)
    requests.push_back({.prompt = prompt,
                        .max_tokens = std::min<uint64_t>(fields.max_tokens.value_or(UINT64_MAX),
                                                         options_.context - prompt.size()),
                        .stop_tokens = setup.stop_tokens,
                        .sampling = setup.head.sampling,
                        .answers = setup.answers,
                        .prompt_logits = setup.echo && setup.logprobs,
                        .borders = borders});
  Result<std::shared_ptr<Generation>> generation =
      Generation::create(std::move(setup), job, tokenizer_, kernels_, clock_);
  if (!generation) {
    job->fail(to_api_error(generation.error()));
    job->attach(std::move(reply), 0);
    return jobs_.forget(id);
  }
  (*generation)->on_give_up([this, id] { stop(id); });
  if (id_from == IdFrom::Server) job->on_abandoned([this, id] { stop(id); });
  const std::vector<std::shared_ptr<engine::RequestListener>> listeners =
      (*generation)->create_listeners();
  {
    const std::scoped_lock lock(mutex_);
    Running& running = running_[id];
    running = {.job = job, .generation = *generation, .tickets = {}};
    for (size_t i = 0; i < requests.size(); ++i)
      running.tickets.push_back(loop_.submit(std::move(requests[i]), listeners[i]));
  }
  job->attach(std::move(reply), 0);
}

void Service::stop(const std::string& id) {
  std::vector<Ticket> tickets;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = running_.find(id); found != running_.end())
      tickets = found->second.tickets;
  }
  for (const Ticket ticket : tickets) loop_.cancel(ticket);
}

void Service::tick() {
  std::vector<Running> running;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [id, entry] : running_) running.push_back(entry);
  }
  for (const Running& entry : running) {
    entry.generation->tick();
    if (!entry.job->ended()) continue;
    {
      const std::scoped_lock lock(mutex_);
      running_.erase(entry.job->id());
    }
    jobs_.keep(entry.job);
  }
}

void Service::reattach(const std::string& id, const HttpRequest& request, Reply reply) {
  const std::shared_ptr<Job> job = jobs_.find(id);
  if (job == nullptr)
    return send(reply, not_found(fmt::format("there is no request {}, or no longer\n  finished "
                                             "answers are kept for a while; docs/api.md says more",
                                             id)));
  job->attach(std::move(reply), events_seen(request.query));
}

void Service::cancel(const std::string& id, Reply reply) {
  const std::shared_ptr<Job> job = jobs_.find(id);
  if (job == nullptr) return send(reply, not_found(fmt::format("there is no request {}", id)));
  const bool was_running = !job->ended();
  stop(id);
  reply.send(200, kJson, json_text({{"id", id}, {"cancelled", was_running}}));
}

// --- Everything else.

void Service::tokenize(const HttpRequest& request, Reply reply) {
  const ApiResult<TokenizeRequest> parsed = parse_tokenize_request(request.body, options_.model.id);
  if (!parsed) return send(reply, parsed.error());
  const Result<std::vector<TokenId>> ids =
      tokenizer_.encode(parsed->text, parsed->parse_special ? text::SpecialTokens::Parse
                                                            : text::SpecialTokens::AsText);
  if (!ids) return send(reply, to_api_error(ids.error()));
  std::vector<std::string> pieces;
  for (const TokenId id : *ids) pieces.emplace_back(tokenizer_.bytes_of(id).value_or(""));
  reply.send(200, kJson, tokenize_json(*ids, parsed->with_pieces ? &pieces : nullptr));
}

void Service::detokenize(const HttpRequest& request, Reply reply) {
  const ApiResult<std::vector<TokenId>> ids =
      parse_detokenize_request(request.body, options_.model.id, tokenizer_.vocabulary_size());
  if (!ids) return send(reply, ids.error());
  const Result<std::string> bytes = tokenizer_.decode(*ids);
  if (!bytes) return send(reply, to_api_error(bytes.error()));
  reply.send(200, kJson, detokenize_json(*bytes));
}

void Service::models(const HttpRequest&, Reply reply) {
  reply.send(200, kJson,
             json_text({{"object", "list"},
                        {"data",
                         {{{"id", options_.model.id},
                           {"object", "model"},
                           {"created", started_},
                           {"owned_by", "deltafin"},
                           {"deltafin",
                            {{"architecture", options_.model.architecture},
                             {"context", options_.context},
                             {"chat", options_.chat_template != nullptr}}}}}}}));
}

void Service::health(const HttpRequest&, Reply reply) {
  const EngineStatus status = loop_.status();
  ordered_json json = {{"status", name_of(status.state)}};
  if (status.state == ServerState::Loading) json["loading"] = status.loading_fraction;
  if (!status.last_failure.empty()) json["failure"] = status.last_failure;
  if (const std::string problem = jobs_.disk_problem(); !problem.empty())
    json["state_directory"] = problem;
  const bool serves = status.state == ServerState::Ready || status.state == ServerState::Degraded;
  reply.send(serves ? 200 : 503, kJson, json_text(json));
}

void Service::status(const HttpRequest&, Reply reply) {
  look([&](const ServerLook& now) { reply.send(200, kJson, status_json(now)); });
}

void Service::metrics(const HttpRequest&, Reply reply) {
  look([&](const ServerLook& now) {
    reply.send(200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(now));
  });
}

void Service::note_disk(double rate) {
  const std::scoped_lock lock(mutex_);
  disk_rate_ = rate;
}

void Service::look(const std::function<void(const ServerLook&)>& use) const {
  const EngineStatus status = loop_.status();
  std::optional<double> disk_rate;
  {
    const std::scoped_lock lock(mutex_);
    disk_rate = disk_rate_;
  }
  use({.model = options_.model,
       .engine = status,
       .http = server_ != nullptr ? server_->snapshot() : HttpCounters(),
       .request_limit = options_.requests,
       .kept_answer_bytes = jobs_.kept_bytes(),
       .disk_bytes_per_second = disk_rate,
       .resident_bytes = Machine().resident_bytes().value_or(0),
       .uptime = clock_.now() - started_at_});
}

void Service::page(const HttpRequest&, Reply reply) {
  reply.send(
      200, "text/html; charset=utf-8", std::string(page_html()),
      {{"Content-Security-Policy", std::string(page_policy())}, {"Cache-Control", "no-cache"}});
}

}  // namespace deltafin::serve
