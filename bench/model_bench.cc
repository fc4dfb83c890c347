// A whole model with everything in memory: prefill of a prompt, and decode, against the roof of
// reading the weights that a token needs.
//
//   DELTAFIN_BENCH_MODEL=DIRECTORY ./x bench model
//
// Without the variable it measures the bundled model, which is small enough for the caches of a
// processor and so says little about larger ones. Tokens are pseudo-random, which routes evenly:
// the worst case for any cache of experts.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/machine.h"
#include "checkpoint/inventory.h"
#include "engine/engine.h"
#include "engine/pass.h"
#include "record.h"
#include "roofs.h"
#include "row.h"
#include "workload.h"

namespace deltafin::bench {
namespace {

constexpr uint64_t kEverything = 1ull << 40;  // the cache holds no more than there is

std::string model_directory() {
  const char* directory = std::getenv("DELTAFIN_BENCH_MODEL");
  return directory != nullptr ? directory : DELTAFIN_SOURCE_DIR "/models/demo";
}

template <class T>
T value_of(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "model_bench: %s\n", result.error().what.c_str());
  std::exit(1);
}

// The model, opened once for all benchmarks, with all experts in memory.
struct OpenModel {
  OpenModel() : reader(io::make_thread_reader({})) {
    engine::EngineOptions options;
    options.thread_count = usable_core_count();
    options.expert_cache_bytes = kEverything;
    options.activation_bytes = kEverything;
    engine = value_of(engine::Engine::open({.storage = storage, .reader = *reader, .clock = clock},
                                           model_directory(), options, {}, never));
    inventory = checkpoint::take_inventory(engine->contract());
    // Routes of many rows touch every expert.
    engine::Sequence sequence = engine->new_sequence();
    for (int i = 0; i < 4; ++i) run(sequence, 512);
  }

  // Appends pseudo-random tokens.
  void run(engine::Sequence& sequence, size_t count) {
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      token = TokenId((random >> 33) % engine->vocab_size());
    }
    const engine::PassRequest request{.sequence = &sequence, .tokens = tokens};
    engine::Pass pass = value_of(engine::run_pass(*engine, std::span(&request, 1), never));
    pass.commit(0, count);
  }

  io::PosixStorage storage;
  SystemClock clock;
  CancelToken never;
  std::unique_ptr<io::Reader> reader;
  std::unique_ptr<engine::Engine> engine;
  checkpoint::Inventory inventory;
  uint64_t random = 1;
};

OpenModel& model() {
  static OpenModel opened;
  return opened;
}

// `rows` tokens an iteration, of which the last has logits. Bytes are those of one row: more rows
// share some experts and not others.
void set_rates(benchmark::State& state, size_t rows) {
  const checkpoint::Inventory& inventory = model().inventory;
  const double bytes = double(inventory.cold_trunk_bytes + inventory.cold_expert_bytes);
  const double head =
      double(model().engine->contract().hidden_size()) * double(model().engine->vocab_size());
  const double flop = 2 * (double(rows) * (double(inventory.active_parameter_count) - head) + head);
  static ReadRoof read_roof;
  ThreadTeam& team = team_of(usable_core_count());
  set_counters(state, bytes, flop, read_roof.measure(team), fma_roof(team, widest_vector_bits()));
}

void prefill(benchmark::State& state) {
  const size_t rows = size_t(state.range(0));
  model();
  for (auto _ : state) {
    engine::Sequence sequence = model().engine->new_sequence();
    model().run(sequence, rows);
  }
  set_rates(state, rows);
}

void decode(benchmark::State& state) {
  engine::Sequence sequence = model().engine->new_sequence();
  model().run(sequence, size_t(state.range(0)));
  for (auto _ : state) model().run(sequence, 1);
  set_rates(state, 1);
}

// Rows are named after the model: they stand beside each other in one file.
const bool registered = [] {
  const std::string name = model_name(model_directory());
  const auto add = [&](const char* what, void (*run)(benchmark::State&)) {
    return benchmark::RegisterBenchmark((name + "/" + what).c_str(), run)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  };
  add("prefill", prefill)->ArgName("tokens")->Arg(128)->Arg(512)->Iterations(1);
  add("decode", decode)->ArgName("context")->Arg(128)->Arg(1024)->Iterations(32);
  return true;
}();

}  // namespace
}  // namespace deltafin::bench
