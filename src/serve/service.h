// The routes: from HTTP requests to the engine's loop and back.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/token.h"
#include "engine/sampler.h"
#include "numerics/kernels.h"
#include "serve/api/generation_request.h"
#include "serve/engine_loop.h"
#include "serve/generation.h"
#include "serve/http/http_server.h"
#include "serve/job_store.h"
#include "serve/status.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer.h"

namespace deltafin::serve {

struct ServiceOptions {
  ServedModel model;
  uint64_t context = 8192;              // positions of a sequence
  uint32_t requests = 1;                // sequences at a time
  uint32_t queue = 32;                  // requests that may wait
  engine::SamplingParameters sampling;  // where a request says nothing
  std::vector<TokenId> stop_tokens;     // of a completion; a chat has its template's too
  const text::ChatTemplate* chat_template = nullptr;  // null: this model has no chat
  std::string why_no_chat;                            // then
  text::ChatOptions chat_options;                     // where a request says nothing
  std::optional<TokenId> end_of_turn;
  std::function<uint64_t()> draw_seed;  // for requests without one
  JobStoreOptions jobs;
};

// handle() is called on threads of the server, tick() on one that nobody waits for.
class Service {
 public:
  // The references must outlive it.
  Service(ServiceOptions options, const text::Tokenizer& tokenizer,
          const numerics::Kernels& kernels, EngineLoop& loop, const Clock& clock);

  void handle(HttpRequest request, Reply reply);
  // A few times a second: keeps streams alive, ends what took too long, writes what is finished to
  // the disk.
  void tick();

  // What reads alone get, in bytes a second, for /status.
  void note_disk(double rate);
  // For /metrics and /status, which ask the transport.
  void watch(const HttpServer* server) { server_ = server; }

 private:
  struct Running {
    std::shared_ptr<Job> job;
    std::shared_ptr<Generation> generation;
    std::vector<Ticket> tickets;
  };

  void complete(const HttpRequest& request, Reply reply);
  void chat(const HttpRequest& request, Reply reply);
  void tokenize(const HttpRequest& request, Reply reply);
  void detokenize(const HttpRequest& request, Reply reply);
  void models(const HttpRequest& request, Reply reply);
  void health(const HttpRequest& request, Reply reply);
  void status(const HttpRequest& request, Reply reply);
  void metrics(const HttpRequest& request, Reply reply);
  void page(const HttpRequest& request, Reply reply);
  void reattach(const std::string& id, const HttpRequest& request, Reply reply);
  void cancel(const std::string& id, Reply reply);

  ApiDefaults defaults();
  ApiResult<void> admit() const;
  ApiResult<std::vector<TokenId>> prompt_ids(const CompletionPrompt& prompt) const;
  ApiResult<GenerationSetup> setup_of(const GenerationFields& fields, bool is_chat);
  // Hands it to the engine and lets the client listen. `borders`: of the one prompt of a chat.
  void start(const HttpRequest& request, Reply reply, const GenerationFields& fields,
             GenerationSetup setup, std::vector<size_t> borders);
  void stop(const std::string& id);
  void look(const std::function<void(const ServerLook&)>& use) const;

  ServiceOptions options_;
  const text::Tokenizer& tokenizer_;
  const numerics::Kernels& kernels_;
  EngineLoop& loop_;
  const Clock& clock_;
  const HttpServer* server_ = nullptr;
  JobStore jobs_;
  const int64_t started_;  // Unix seconds
  // Of our ids: a server that was started again in the same second must not give the same ones.
  const uint64_t tag_;
  std::chrono::nanoseconds started_at_;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Running> running_;
  std::optional<double> disk_rate_;
  std::atomic<uint64_t> next_id_ = 0;
};

}  // namespace deltafin::serve
