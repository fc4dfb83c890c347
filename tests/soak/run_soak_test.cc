// K3 in its real widths computes: first a few layers of it, in which nothing has to be streamed,
// then all of it in a twentieth of its trunk's memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "audit/digest.h"
#include "base/clock.h"
#include "base/machine.h"
#include "checkpoint/checkpoint.h"
#include "engine/footprint.h"
#include "engine/generate.h"
#include "io/simulated.h"
#include "memory/plan.h"
#include "soak/k3.h"
#include "soak/synthetic_checkpoint.h"
#include "support/engine_fixture.h"

namespace deltafin {
namespace {

using checkpoint::Checkpoint;
using engine::Engine;
using engine::EngineOptions;
using test::SyntheticCheckpoint;

// What a run leaves behind.
struct Witness final : engine::GenerationListener, model::Observer {
  void on_token(TokenId /*token*/, std::span<const float> logits) override {
    token_times.push_back(clock.now());
    digest.add(logits);
    double sum = 0, squares = 0;
    for (const float logit : logits) {
      sum += logit;
      squares += double(logit) * logit;
    }
    const double mean = sum / double(logits.size());
    spreads.push_back(std::sqrt(squares / double(logits.size()) - mean * mean));
  }
  void on_routes(size_t layer, std::span<const numerics::Route> routes) override {
    std::set<uint32_t> wanted;
    for (const numerics::Route& route : routes) wanted.insert(route.expert);
    wanted_count += wanted.size();
    experts[layer].merge(wanted);
  }

  const SystemClock clock;  // the engine's may be simulated
  const std::chrono::nanoseconds start = clock.now();
  std::vector<std::chrono::nanoseconds> token_times;
  audit::LogitsDigest digest;
  std::vector<double> spreads;                   // standard deviation of each row of logits
  std::map<size_t, std::set<uint32_t>> experts;  // that were chosen, by layer
  uint64_t wanted_count = 0;  // distinct experts of a layer and a pass, over all of them
  engine::GenerationResult result;
};

// Four tokens of a prompt in passes of `prefill_rows`, then two passes of one token.
void generate_three(Engine& engine, size_t prefill_rows, Witness& witness) {
  engine::GenerateRequest request;
  const TokenId last = TokenId(engine.vocab_size()) - 1;
  request.prompt = {last, 0, last / 2, last / 3};
  request.max_tokens = 3;
  request.prefill_rows = prefill_rows;
  engine.set_observer(&witness);
  engine::Sequence sequence = engine.new_sequence();
  const CancelToken never;
  witness.result = test::value_of(generate(engine, sequence, request, witness, never));
}

// Numbers that neither explode nor die, and routers that choose: else the digest of a run would say
// little about what happened in between.
void expect_alive(const Witness& witness, size_t moe_layer_count) {
  EXPECT_EQ(witness.digest.row_count(), 3u);
  EXPECT_EQ(witness.result.decode_passes, 2u);
  EXPECT_THAT(witness.spreads, testing::Each(testing::AllOf(testing::Gt(0.3), testing::Lt(3.0))));
  EXPECT_EQ(witness.experts.size(), moe_layer_count);
  // Six rows with 16 experts each: 96 if no two rows share one, 16 if all are alike.
  for (const auto& [layer, experts] : witness.experts) EXPECT_GT(experts.size(), 48u) << layer;
}

std::string describe(const Witness& witness, const io::ReaderCounters& reads) {
  size_t fewest = SIZE_MAX;
  for (const auto& [layer, experts] : witness.experts) fewest = std::min(fewest, experts.size());
  return fmt::format(
      "prefill {:.1f} s, two more tokens {:.1f} s, {:.1f} GB read, peak {:.2f} GB; at least {} "
      "experts "
      "a layer; logits spread {:.2f}; digest {}\n",
      seconds(witness.token_times[0] - witness.start),
      seconds(witness.token_times.back() - witness.token_times[0]), double(reads.bytes) / 1e9,
      double(Machine().peak_resident_bytes().value_or(0)) / 1e9, fewest, witness.spreads[0],
      witness.digest.hex());
}

// Recorded by these tests on a processor with AVX-512. Weights are made and not read, so a change
// of tests/soak/noise.cc or of what synthetic_checkpoint.cc asks of it changes them, too.
constexpr const char* kFewLayersDigest =
    "2a75adeab4e5c978927edfcd217e70490f196e39c1dd9a68edb3aa0d4b57d9ef";
constexpr const char* kFullSizeDigest =
    "422f21a98459f4a7970f83fdcc915cc5cd1f097f2a3d8a0ba9d9b4a894414af3";

class FewLayersSoak : public testing::Test {
 protected:
  static constexpr uint32_t kLayers = 5;  // dense, KDA, KDA, MLA, KDA

  std::string run(io::Reader& reader, const Clock& clock, const EngineOptions& options,
                  size_t prefill_rows) {
    const CancelToken never;
    const std::unique_ptr<Engine> engine =
        test::value_of(Engine::open({.storage = storage_, .reader = reader, .clock = clock},
                                    SyntheticCheckpoint::kFolder, options, {}, never));
    Witness witness;
    generate_three(*engine, prefill_rows, witness);
    expect_alive(witness, kLayers - 1);
    std::cout << describe(witness, reader.snapshot());
    return witness.digest.hex();
  }

  SyntheticCheckpoint storage_{test::k3_config(kLayers, 16384)};
};

TEST_F(FewLayersSoak, OfK3InOnePassWithTwoThreadsHaveTheRecordedDigest) {
  const io::OpenedReader reader =
      test::value_of(io::open_reader(io::ReaderKind::Auto, io::DirectReads::Auto));
  const SystemClock clock;
  EXPECT_EQ(run(*reader.reader, clock, {.thread_count = 2}, 4), kFewLayersDigest);
}

TEST_F(FewLayersSoak, OfK3RowByRowFromReadsOutOfOrderHaveTheSame) {
  SimulatedClock clock;
  const std::unique_ptr<io::Reader> reader = io::make_simulated_reader({.seed = 7}, clock);
  EXPECT_EQ(run(*reader, clock, {.thread_count = 1, .expert_cache_bytes = 1}, 1), kFewLayersDigest);
}

// The whole of K3: 1.56 TB, of which every pass reads 111 GB of trunk and its experts.
class FullSizeSoak : public testing::Test {
 protected:
  static constexpr uint64_t kBudgetBytes = 20'000'000'000;

  Result<memory::Plan> plan() const {
    TRY(const Checkpoint checkpoint, Checkpoint::open(storage_, SyntheticCheckpoint::kFolder));
    return make_plan(engine::footprint_of(checkpoint),
                     {.budget_bytes = kBudgetBytes, .context = 6, .prompt_rows = 4});
  }

  SyntheticCheckpoint storage_{test::k3_config()};
};

// Refuses further memory when this process has mapped so much: a plan that is not kept then ends in
// an error, and not with the end of whatever else runs on this machine.
void limit_address_space(uint64_t bytes) {
  const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
}

TEST_F(FullSizeSoak, OfK3ReadsAPromptAndAnswersWithinTwentyGigabytes) {
  const uint64_t usable = Machine().memory().usable_bytes().value_or(0);
  if (usable < kBudgetBytes)
    GTEST_SKIP() << fmt::format("needs 20 GB of memory, and {:.1f} GB are there",
                                double(usable) / 1e9);
  const Result<memory::Plan> plan = this->plan();
  if (!plan) GTEST_SKIP() << plan.error().what;
  // What is mapped and never touched, such as the stacks of threads, is no memory of the budget.
  limit_address_space(kBudgetBytes + 2'000'000'000);

  const std::unique_ptr<io::Reader> reader = io::make_thread_reader({});
  const SystemClock clock;
  const CancelToken never;
  const EngineOptions options = {.thread_count = usable_core_count(),
                                 .expert_cache_bytes = plan->expert_cache_bytes,
                                 .resident_layers = plan->trunk_resident_layers,
                                 .activation_bytes = plan->activation_bytes};
  const std::unique_ptr<Engine> engine =
      test::value_of(Engine::open({.storage = storage_, .reader = *reader, .clock = clock},
                                  SyntheticCheckpoint::kFolder, options, {}, never));
  Witness witness;
  generate_three(*engine, 4, witness);
  std::cout << describe(witness, reader->snapshot());
  expect_alive(witness, 92);

  const engine::EngineCounters counters = engine->snapshot();
  std::cout << fmt::format("{} layers stay, {} experts have room; {} were read and {} were there\n",
                           counters.trunk.resident_layers, counters.experts.cache_slots,
                           counters.experts.misses, counters.experts.hits);
  // What a pass needs is read once, and the next pass may have its first layers read already.
  const uint64_t layers_of_passes = 3 * uint64_t{counters.trunk.streamed_layers};
  EXPECT_GE(counters.trunk.stream.layers_read, layers_of_passes);
  EXPECT_LE(counters.trunk.stream.layers_read, layers_of_passes + 2);
  EXPECT_EQ(counters.experts.hits + counters.experts.misses, witness.wanted_count);
  EXPECT_EQ(counters.experts.bytes_read, counters.experts.misses * 17'547'264);
  EXPECT_LE(Machine().peak_resident_bytes().value_or(0), kBudgetBytes);
  EXPECT_EQ(witness.digest.hex(), kFullSizeDigest);
}

}  // namespace
}  // namespace deltafin
