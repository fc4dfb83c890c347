// At which positions keys are rotated. Scores depend on differences of positions alone, so a
// constant offset shows in no logit, but in the cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "memory/trunk.h"
#include "numerics/kernels.h"
#include "support/engine_fixture.h"
#include "support/golden.h"
#include "support/same_bits.h"

namespace deltafin {
namespace {

using checkpoint::TensorRole;
using numerics::Kernels;

constexpr TokenId kToken = 77;

// The keys of layer 0 for kToken, normalised per head and not rotated.
std::vector<float> plain_keys(const std::string& directory) {
  const io::PosixStorage storage;
  const std::unique_ptr<io::Reader> reader = io::make_thread_reader({});
  const CancelToken never;
  const checkpoint::Checkpoint checkpoint =
      test::value_of(checkpoint::Checkpoint::open(storage, directory));
  ThreadTeam team(1);
  const SystemClock clock;
  const std::unique_ptr<memory::Trunk> trunk =
      test::value_of(memory::Trunk::load(checkpoint, *reader, team, clock, {}, {}, never));
  const checkpoint::QwenConfig& config = *checkpoint.contract().qwen();
  const memory::TrunkLease layer = test::value_of(trunk->layer(0, never));
  const Kernels& kernels = numerics::kernel_variants()[0];
  const auto norm = [&](const float* x, TensorRole role, float* y, size_t n) {
    kernels.rms_norm(x, layer->vector(role).data(), numerics::NormWeight::Plain,
                     config.rms_norm_eps, y, n);
  };

  std::vector<float> x(config.hidden_size), packed(numerics::packed_size(config.hidden_size));
  CHECK(trunk->embedding().read(std::span(&kToken, 1), x, never));
  norm(x.data(), TensorRole::InputNorm, x.data(), x.size());
  const numerics::WeightMatrix& projection = layer->matrix(TensorRole::KProj);
  kernels.pack_column(projection.format, x.data(), x.size(), packed.data());
  std::vector<float> keys(projection.rows);
  kernels.product(projection, packed.data(), packed.size(), 1, keys.data(), keys.size());
  for (size_t at = 0; at < keys.size(); at += config.head_dim)
    norm(keys.data() + at, TensorRole::KNorm, keys.data() + at, config.head_dim);
  return keys;
}

// All of tiny-qwen3's head is rotated, and its base is not the usual 10000.
TEST(RotaryPositions, CountFromZero) {
  const std::string directory = test::golden_path("tiny-qwen3");
  const std::vector<float> plain = plain_keys(directory);
  test::EngineFixture fixture(directory);
  engine::Engine& engine = fixture.engine();
  const checkpoint::QwenConfig& config = *engine.contract().qwen();
  constexpr size_t kPositions = 520;
  engine::Sequence sequence = engine.new_sequence();
  test::all_logits(engine, sequence, std::vector<TokenId>(kPositions, kToken), 300);

  // Cache rows are read through a transaction that is dropped, on a fork.
  state::SequenceState fork = sequence.state().fork();
  state::Transaction reading(fork, 1, state::ReplayInputs::Dropped);
  const float* first = reading.cache_row(0, 0);
  test::expect_same_bits({first, first + plain.size()}, plain, "position 0");

  const size_t half = config.rotary_dim / 2;
  ASSERT_EQ(2 * half, config.head_dim);
  double worst = 0;
  for (size_t position = 0; position < kPositions; ++position) {
    const float* cached = reading.cache_row(0, position);
    for (size_t at = 0; at < plain.size(); at += config.head_dim)
      for (size_t i = 0; i < half; ++i) {
        // Frequencies are rounded to f32 once: docs/numerics.md.
        const float frequency = float(std::pow(config.rope_theta, -double(i) / double(half)));
        const double angle = double(position) * double(frequency);
        const double a = double(plain[at + i]), b = double(plain[at + i + half]);
        const double x = a * std::cos(angle) - b * std::sin(angle);
        const double y = b * std::cos(angle) + a * std::sin(angle);
        worst = std::max({worst, std::fabs(double(cached[at + i]) - x),
                          std::fabs(double(cached[at + i + half]) - y)});
      }
  }
  EXPECT_LE(worst, 1e-5);
}

}  // namespace
}  // namespace deltafin
