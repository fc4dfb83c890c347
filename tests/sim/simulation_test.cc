// The whole engine on a simulated disk and clock: reads are delayed, reordered, cut short and fail,
// all from one seed. Whatever happens, the bits are those of the quiet disk or the error is clean,
// and the engine stays usable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/philox.h"
#include "engine/generate.h"
#include "engine/pass.h"
#include "io/simulated.h"
#include "support/engine_fixture.h"
#include "support/golden.h"
#include "support/same_bits.h"

namespace deltafin {
namespace {

using engine::Engine;
using engine::EngineOptions;
using engine::Sequence;
using test::expect_same_bits;
using testing::AnyOf;
using testing::HasSubstr;

struct Subject {
  const char* checkpoint;  // under tests/golden
  const char* golden;
  const char* logits;  // of prompt 1
  double logits_bound;
  const char* first_shard;
  uint64_t trunk_offset;  // of a byte there that belongs to a matrix of layer 0
  uint64_t expert_bytes;
  // Probability of either kind of fault in a read: some runs are to fail, and some not.
  float permanent_faults;
};

// Experts with scales; two stacks of tensors for all experts of a layer; three tensors an expert.
constexpr Subject kSubjects[] = {
    {"tiny-k3", "golden-k3", "p1.logits", 3e-4, "model-00001-of-000011.safetensors", 100'000,
     3 * (32 * 64 / 2 + 32 * 64 / 32), 0.002f},
    {"tiny-qwen3.5-moe", "tiny-qwen3.5-moe/goldens", "p1.logits.f64run", 3e-4,
     "model-00001-of-00003.safetensors", 100'000, 3 * 32 * 64 * 2, 0.002f},
    {"tiny-qwen3-moe", "tiny-qwen3-moe/goldens", "p1.logits.f64run", 5e-5,
     "model-00001-of-00003.safetensors", 310'000, 3 * 32 * 64 * 2, 0.006f},
};

std::vector<TokenId> prompt_of(const Subject& subject) {
  return test::to_tokens(test::Golden(subject.golden).i32("p1.ids"));
}

// An engine on a simulated disk that shows a golden checkpoint.
struct Simulation {
  explicit Simulation(const Subject& shown, uint64_t seed, uint64_t cache_bytes = 1)
      : subject(shown), storage(real), reader(io::make_simulated_reader({.seed = seed}, clock)) {
    options.expert_cache_bytes = cache_bytes;  // 1: almost every expert is read again
    options.hints = memory::Hints::All;
    options.thread_count = 2;
    // No layer, or one, or two, or all stay in memory.
    if (seed % 4 != 3) options.resident_layers = uint32_t(seed % 4);
  }

  Result<std::unique_ptr<Engine>> open() {
    return Engine::open({.storage = storage, .reader = *reader, .clock = clock},
                        test::golden_path(subject.checkpoint), options, {}, never);
  }

  Status run(Engine& engine, Sequence& sequence, std::span<const TokenId> tokens,
             std::vector<float>* logits = nullptr) {
    const engine::PassRequest request{
        .sequence = &sequence, .tokens = tokens, .logits = engine::LogitsOf::AllRows};
    TRY(engine::Pass pass, engine::run_pass(engine, std::span(&request, 1), never));
    if (logits != nullptr) {
      for (size_t row = 0; row < tokens.size(); ++row) {
        const std::span<const float> values = pass.logits(0, row);
        logits->insert(logits->end(), values.begin(), values.end());
      }
    }
    pass.commit(0, tokens.size());
    return {};
  }

  const Subject& subject;
  io::PosixStorage real;
  io::SimulatedStorage storage;
  SimulatedClock clock;
  std::unique_ptr<io::Reader> reader;
  EngineOptions options;
  const CancelToken never;
};

class SimulationTest : public testing::TestWithParam<Subject> {
 protected:
  std::vector<float> quiet_logits() const {
    test::EngineFixture fixture(test::golden_path(GetParam().checkpoint));
    Sequence sequence = fixture.engine().new_sequence();
    return test::all_logits(fixture.engine(), sequence, prompt_, prompt_.size());
  }

  const std::vector<TokenId> prompt_ = prompt_of(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Checkpoints, SimulationTest, testing::ValuesIn(kSubjects),
                         [](const testing::TestParamInfo<Subject>& subject) {
                           std::string name = subject.param.checkpoint;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

TEST_P(SimulationTest, DelaysReorderingAndTransientFaultsDoNotChangeABit) {
  const std::vector<float> expected = quiet_logits();
  const std::vector<TokenId>& tokens = prompt_;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Simulation simulation(GetParam(), seed, seed % 2 == 0 ? 1 : 100'000);
    const std::unique_ptr<Engine> engine = test::value_of(simulation.open());
    simulation.storage.set_faults(
        {.seed = seed, .eio_probability = 0.1f, .short_read_probability = 0.2f});
    Sequence sequence = engine->new_sequence();
    std::vector<float> logits;
    const Status status = simulation.run(*engine, sequence, tokens, &logits);
    ASSERT_TRUE(status) << "seed " << seed << ": " << status.error().what;
    expect_same_bits(logits, expected, "seed " + std::to_string(seed));
    EXPECT_GT(simulation.storage.snapshot().faults, 0u) << "seed " << seed;
    EXPECT_GT(simulation.reader->snapshot().retries, 0u) << "seed " << seed;
  }
}

TEST_P(SimulationTest, OneSeedGivesOneRun) {
  std::vector<std::chrono::nanoseconds> ends;
  for (int i = 0; i < 2; ++i) {
    Simulation simulation(GetParam(), 77);
    const std::unique_ptr<Engine> engine = test::value_of(simulation.open());
    Sequence sequence = engine->new_sequence();
    ASSERT_TRUE(simulation.run(*engine, sequence, prompt_));
    ends.push_back(simulation.clock.now());
  }
  EXPECT_EQ(ends[0], ends[1]);
}

// A swarm of permanent faults: each run either has the right bits or fails cleanly, and once the
// disk is healed the same sequence goes on as if nothing had been.
TEST_P(SimulationTest, PermanentFaultsAreCleanErrorsAndTheNextRequestWorks) {
  const std::vector<float> expected = quiet_logits();
  const std::vector<TokenId>& tokens = prompt_;
  const size_t vocab = expected.size() / tokens.size();
  int failures = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Simulation simulation(GetParam(), seed);
    const std::unique_ptr<Engine> engine = test::value_of(simulation.open());
    Sequence sequence = engine->new_sequence();
    ASSERT_TRUE(simulation.run(*engine, sequence, std::span(tokens).first(5)));
    simulation.storage.set_faults({.seed = seed,
                                   .eio_probability = GetParam().permanent_faults,
                                   .short_read_probability = GetParam().permanent_faults,
                                   .random_duration = io::FaultDuration::Permanent});
    const Status status = simulation.run(*engine, sequence, std::span(tokens).subspan(5));
    if (!status) {
      ++failures;
      EXPECT_EQ(status.error().code, ErrorCode::Io) << status.error().what;
      EXPECT_THAT(status.error().what, HasSubstr(".safetensors")) << seed;
      EXPECT_THAT(status.error().what, HasSubstr("offset")) << seed;
      EXPECT_THAT(status.error().what, AnyOf(HasSubstr("layer"), HasSubstr("embedding"))) << seed;
      EXPECT_EQ(sequence.position_count(), 5u);
    } else {
      sequence = engine->new_sequence();
      simulation.storage.set_faults({});
      ASSERT_TRUE(simulation.run(*engine, sequence, std::span(tokens).first(5)));
    }
    simulation.storage.set_faults({});
    std::vector<float> logits;
    ASSERT_TRUE(simulation.run(*engine, sequence, std::span(tokens).subspan(5), &logits));
    expect_same_bits(logits, {expected.begin() + ptrdiff_t(5 * vocab), expected.end()},
                     "seed " + std::to_string(seed));
  }
  EXPECT_GT(failures, 3) << "the faults are too rare to test anything";
  EXPECT_LT(failures, 12) << "the faults are too frequent to test the other side";
}

TEST_P(SimulationTest, ATrunkThatCannotBeReadRefusesToOpenAndNamesTheFile) {
  Simulation simulation(GetParam(), 5);
  simulation.options.resident_layers = ~uint32_t{0};
  simulation.storage.set_faults(
      {.ranges = {{.file = GetParam().first_shard, .offset = GetParam().trunk_offset, .size = 1}}});
  const Result<std::unique_ptr<Engine>> engine = simulation.open();
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::Io);
  EXPECT_THAT(engine.error().what, HasSubstr(GetParam().first_shard));
}

TEST_P(SimulationTest, ALayerThatCannotBeStreamedIsAnErrorOfThatPass) {
  Simulation simulation(GetParam(), 5);
  simulation.options.resident_layers = 0;
  const std::unique_ptr<Engine> engine = test::value_of(simulation.open());
  Sequence sequence = engine->new_sequence();
  simulation.storage.set_faults(
      {.ranges = {{.file = GetParam().first_shard, .offset = GetParam().trunk_offset, .size = 1}}});
  for (int i = 0; i < 2; ++i) {
    const Status status = simulation.run(*engine, sequence, prompt_);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::Io);
    EXPECT_THAT(status.error().what, HasSubstr("layer 0 of the trunk"));
    EXPECT_THAT(status.error().what, HasSubstr(GetParam().first_shard));
  }
  simulation.storage.set_faults({});
  std::vector<float> logits;
  ASSERT_TRUE(simulation.run(*engine, sequence, prompt_, &logits));
  expect_same_bits(logits, quiet_logits(), "after the disk was healed");
}

// Breaks one byte of one expert's scales in a copy of its shard.
TEST(Simulation, AScaleOf255IsACleanErrorWhenThatExpertIsRead) {
  Simulation simulation(kSubjects[0], 6);
  const checkpoint::Checkpoint checkpoint = test::value_of(checkpoint::Checkpoint::open(
      simulation.real, test::golden_path(simulation.subject.checkpoint)));
  // Every expert of layer 3 gets a bad scale, so whichever is chosen first is refused.
  const uint32_t layer = 3;
  const checkpoint::TensorLocation& first =
      checkpoint.expert(layer, 0)[size_t(checkpoint::ExpertPart::W1Scale)];
  const io::File& shard = checkpoint.file(first.file);
  std::vector<std::byte> bytes(shard.size());
  ASSERT_TRUE(io::read_exactly(shard, 0, bytes));
  for (uint32_t expert = 0; expert < 32; ++expert) {
    const checkpoint::TensorLocation& scale =
        checkpoint.expert(layer, expert)[size_t(checkpoint::ExpertPart::W2Scale)];
    ASSERT_EQ(scale.file, first.file);
    bytes[scale.offset + scale.size - 1] = std::byte{255};
  }
  simulation.storage.add_file(shard.path(), bytes);
  const std::unique_ptr<Engine> engine = test::value_of(simulation.open());
  Sequence sequence = engine->new_sequence();
  const Status status = simulation.run(*engine, sequence, prompt_of(simulation.subject));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::BadModel);
  EXPECT_THAT(status.error().what, HasSubstr("255"));
  EXPECT_THAT(status.error().what, HasSubstr("layer 3"));
  EXPECT_THAT(status.error().what, HasSubstr("model-00004-of-000011.safetensors"));
}

// Cancels when a chosen layer has been routed, in the middle of a pass.
class CancelAtLayer final : public model::Observer {
 public:
  CancelAtLayer(CancelToken& token, size_t layer) : token_(token), layer_(layer) {}
  void on_routes(size_t layer, std::span<const numerics::Route>) override {
    if (layer == layer_) token_.cancel();
  }

 private:
  CancelToken& token_;
  size_t layer_;
};

TEST_P(SimulationTest, ACancelInAnyLayerLeavesSequenceAndEngineUsable) {
  const std::vector<float> expected = quiet_logits();
  const std::vector<TokenId>& tokens = prompt_;
  const size_t vocab = expected.size() / tokens.size();
  Simulation simulation(GetParam(), 9);
  const std::unique_ptr<Engine> engine = test::value_of(simulation.open());
  Sequence sequence = engine->new_sequence();
  ASSERT_TRUE(simulation.run(*engine, sequence, std::span(tokens).first(5)));
  for (size_t layer = 1; layer < engine->layer_count(); ++layer) {
    CancelToken token;
    CancelAtLayer observer(token, layer);
    engine->set_observer(&observer);
    const engine::PassRequest request{.sequence = &sequence,
                                      .tokens = std::span(tokens).subspan(5)};
    const Result<engine::Pass> pass = engine::run_pass(*engine, std::span(&request, 1), token);
    ASSERT_FALSE(pass);
    EXPECT_EQ(pass.error().code, ErrorCode::Cancelled);
    engine->set_observer(nullptr);
  }
  std::vector<float> logits;
  ASSERT_TRUE(simulation.run(*engine, sequence, std::span(tokens).subspan(5), &logits));
  expect_same_bits(logits, {expected.begin() + ptrdiff_t(5 * vocab), expected.end()},
                   "after cancels");
}

// A shard taken apart, to be changed and put together again.
struct Shard {
  struct Tensor {
    std::string name, dtype;
    nlohmann::json shape;
    std::vector<std::byte> bytes;
  };
  std::vector<Tensor> tensors;

  explicit Shard(const std::vector<std::byte>& file) {
    uint64_t header_size = 0;
    std::memcpy(&header_size, file.data(), 8);
    const char* text = reinterpret_cast<const char*>(file.data()) + 8;
    const nlohmann::json header = nlohmann::json::parse(text, text + header_size);
    const auto data = file.begin() + ptrdiff_t(8 + header_size);
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
      tensors.push_back(
          {name, entry["dtype"], entry["shape"], {data + ptrdiff_t(begin), data + ptrdiff_t(end)}});
    }
  }

  // Behind a header of odd length, so that nothing is aligned.
  std::vector<std::byte> bytes() const {
    nlohmann::json header;
    std::vector<std::byte> data;
    for (const Tensor& tensor : tensors) {
      const uint64_t at = data.size();
      data.insert(data.end(), tensor.bytes.begin(), tensor.bytes.end());
      header[tensor.name] = {
          {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, data.size()}}};
    }
    std::string text = header.dump();
    if (text.size() % 2 == 0) text += ' ';
    const uint64_t size = text.size();
    std::vector<std::byte> file(8 + size);
    std::memcpy(file.data(), &size, 8);
    std::memcpy(file.data() + 8, text.data(), size);
    file.insert(file.end(), data.begin(), data.end());
    return file;
  }
};

// Shows every shard of the simulation's checkpoint changed by `change`.
void rewrite_shards(Simulation& simulation, const std::function<void(Shard&)>& change) {
  const std::string folder = test::golden_path(simulation.subject.checkpoint);
  for (const io::DirectoryEntry& entry : test::value_of(simulation.real.list(folder))) {
    if (!entry.name.ends_with(".safetensors")) continue;
    const std::string path = io::join_path(folder, entry.name);
    const std::unique_ptr<io::File> file = test::value_of(simulation.real.open(path));
    std::vector<std::byte> bytes(file->size());
    ASSERT_TRUE(io::read_exactly(*file, 0, bytes));
    Shard shard(bytes);
    change(shard);
    simulation.storage.add_file(path, shard.bytes());
  }
}

TEST_P(SimulationTest, AnyOrderAndAlignmentOfTensorsInAShardGivesTheSameBits) {
  const std::vector<float> expected = quiet_logits();
  Simulation simulation(GetParam(), 11);
  Random random(11);
  rewrite_shards(simulation, [&](Shard& shard) {
    for (size_t i = shard.tensors.size(); i > 1; --i)
      std::swap(shard.tensors[i - 1], shard.tensors[random.below(i)]);
  });
  const std::unique_ptr<Engine> engine = test::value_of(simulation.open());
  Sequence sequence = engine->new_sequence();
  std::vector<float> logits;
  const Status status = simulation.run(*engine, sequence, prompt_, &logits);
  ASSERT_TRUE(status) << status.error().what;
  expect_same_bits(logits, expected, "shuffled shards");
  // Several reads an expert now, so the order in which they complete matters.
  EXPECT_GT(simulation.reader->snapshot().reads, 2 * engine->snapshot().experts.misses);
}

// F32 has another order of summation than BF16, so here the bound is that of the goldens.
TEST_P(SimulationTest, PlainTensorsMayBeF32InPlaceOfBf16) {
  Simulation simulation(GetParam(), 12);
  Random random(12);
  rewrite_shards(simulation, [&](Shard& shard) {
    for (Shard::Tensor& tensor : shard.tensors) {
      if (tensor.dtype != "BF16" || random.below(2) == 0) continue;
      std::vector<std::byte> wide(2 * tensor.bytes.size());
      for (size_t i = 0; i < tensor.bytes.size(); i += 2)
        std::copy_n(tensor.bytes.begin() + ptrdiff_t(i), 2, wide.begin() + ptrdiff_t(2 * i + 2));
      tensor.dtype = "F32";
      tensor.bytes = wide;
    }
  });
  const std::unique_ptr<Engine> engine = test::value_of(simulation.open());
  Sequence sequence = engine->new_sequence();
  std::vector<float> logits;
  const Status status = simulation.run(*engine, sequence, prompt_, &logits);
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_LE(test::max_difference(logits, test::Golden(GetParam().golden).f32(GetParam().logits)),
            GetParam().logits_bound);
}

TEST_P(SimulationTest, EachNeededExpertIsReadOncePerPassAndLayer) {
  Simulation simulation(GetParam(),
                        10);  // a cache of two experts: nothing survives from layer to layer
  const std::unique_ptr<Engine> engine = test::value_of(simulation.open());
  Sequence sequence = engine->new_sequence();
  ASSERT_TRUE(simulation.run(*engine, sequence, prompt_));
  const memory::ExpertCounters counters = engine->snapshot().experts;
  EXPECT_EQ(counters.cache_slots, 2u);
  EXPECT_EQ(counters.misses, counters.experts_used - counters.hits);
  const checkpoint::ModelContract& contract = engine->contract();
  uint64_t moe_layers = 0, experts = 0;
  for (const checkpoint::LayerContract& layer : contract.layers) {
    if (!layer.experts) continue;
    ++moe_layers;
    experts += layer.experts->expert_count;
  }
  EXPECT_LE(counters.misses, experts);
  EXPECT_EQ(counters.edges, moe_layers * prompt_.size() * contract.experts_per_token());
  EXPECT_EQ(counters.bytes_read, counters.misses * GetParam().expert_bytes);
}

}  // namespace
}  // namespace deltafin
