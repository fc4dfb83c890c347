#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/family.h"

namespace deltafin::engine {

Engine::Engine(const EngineEnvironment& environment, const EngineOptions& options,
               checkpoint::Checkpoint checkpoint)
    : environment_(environment),
      options_(options),
      checkpoint_(std::move(checkpoint)),
      team_(options.thread_count),
      kernels_(options.kernels != nullptr ? *options.kernels : numerics::best_kernels()),
      pressure_(environment.pressure) {}

Result<std::unique_ptr<Engine>> Engine::open(
    const EngineEnvironment& environment, const std::string& directory,
    const EngineOptions& options, const std::function<void(const memory::TrunkProgress&)>& progress,
    const CancelToken& cancel) {
  TRY(checkpoint::Checkpoint checkpoint,
      checkpoint::Checkpoint::open(environment.storage, directory));
  return open(environment, std::move(checkpoint), options, progress, cancel);
}

Result<std::unique_ptr<Engine>> Engine::open(
    const EngineEnvironment& environment, checkpoint::Checkpoint checkpoint,
    const EngineOptions& options, const std::function<void(const memory::TrunkProgress&)>& progress,
    const CancelToken& cancel) {
  std::unique_ptr<Engine> engine(new Engine(environment, options, std::move(checkpoint)));
  TRY(engine->trunk_,
      memory::Trunk::load(engine->checkpoint_, environment.reader, engine->team_, environment.clock,
                          {.resident_layers = options.resident_layers}, progress, cancel));
  TRY(engine->experts_,
      memory::make_local_expert_store(
          engine->checkpoint_, environment.reader, engine->team_, engine->kernels_,
          environment.clock, model::expert_function(engine->contract()),
          {.cache_bytes = options.expert_cache_bytes, .hints = options.hints}));
  TRY(engine->model_, model::open_model(engine->contract(), *engine->trunk_));
  engine->layer_times_.resize(engine->layer_count());
  return engine;
}

size_t Engine::prefill_rows() const {
  return std::max<uint64_t>(1, options_.activation_bytes / model_->activation_bytes_per_row());
}

EngineCounters Engine::snapshot() const {
  return {.experts = experts_->snapshot(),
          .trunk = trunk_->snapshot(),
          .workspace_bytes = workspace_.bytes(),
          .passes = passes_,
          .rows = rows_,
          .layer_times = layer_times_};
}

Status Engine::check_tokens(std::span<const TokenId> tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && size_t(tokens[i]) < vocab_size()) continue;
    return fail(ErrorCode::Usage,
                fmt::format("token id {} at index {} is outside the vocabulary: expected 0..{}",
                            tokens[i], i, vocab_size() - 1));
  }
  return {};
}

}  // namespace deltafin::engine
