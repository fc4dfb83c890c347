// The output head of a model whose config ties it to the embedding, but whose files hold one.
#include <gtest/gtest.h>

#include <algorithm>

#include "io/simulated.h"
#include "support/engine_fixture.h"
#include "support/golden.h"
#include "support/same_bits.h"

namespace deltafin {
namespace {

using checkpoint::TensorRole;

const std::vector<TokenId> kPrompt = {3, 141, 59, 26};

std::vector<float> logits_of(const io::Storage& storage, const std::string& directory,
                             uint64_t* trunk_bytes) {
  SimulatedClock clock;
  const std::unique_ptr<io::Reader> reader = io::make_simulated_reader({.seed = 1}, clock);
  const CancelToken never;
  const std::unique_ptr<engine::Engine> engine = test::value_of(engine::Engine::open(
      {.storage = storage, .reader = *reader, .clock = clock}, directory, {}, {}, never));
  *trunk_bytes = engine->snapshot().trunk.resident_bytes;
  engine::Sequence sequence = engine->new_sequence();
  return test::all_logits(*engine, sequence, kPrompt, kPrompt.size());
}

TEST(QwenTied, AHeadThatDiffersFromTheEmbeddingIsUsed) {
  const std::string directory = test::golden_path("tiny-qwen3");
  const io::PosixStorage real;
  io::SimulatedStorage changed(real);
  // One row of the head, with every sign turned.
  constexpr size_t kRow = 200;
  {
    const checkpoint::Checkpoint checkpoint =
        test::value_of(checkpoint::Checkpoint::open(real, directory));
    const auto& specs = checkpoint.contract().globals;
    const auto head = std::ranges::find(specs, TensorRole::LmHead, &checkpoint::TensorSpec::role);
    const checkpoint::TensorLocation& at = checkpoint.globals()[size_t(head - specs.begin())];
    ASSERT_EQ(at.dtype, checkpoint::DType::BF16);
    const io::File& shard = checkpoint.file(at.file);
    std::vector<std::byte> bytes(shard.size());
    ASSERT_TRUE(io::read_exactly(shard, 0, bytes));
    const size_t row_bytes = checkpoint.contract().hidden_size() * 2;
    for (size_t i = 1; i < row_bytes; i += 2)
      bytes[at.offset + kRow * row_bytes + i] ^= std::byte{0x80};
    changed.add_file(shard.path(), bytes);
  }

  uint64_t trunk_bytes = 0, changed_trunk_bytes = 0;
  std::vector<float> expected = logits_of(real, directory, &trunk_bytes);
  const std::vector<float> found = logits_of(changed, directory, &changed_trunk_bytes);
  const size_t vocab = expected.size() / kPrompt.size();
  for (size_t row = 0; row < kPrompt.size(); ++row)
    expected[row * vocab + kRow] = -expected[row * vocab + kRow];
  test::expect_same_bits(found, expected, "logits");
  // A head that is a copy is not in memory twice.
  EXPECT_EQ(changed_trunk_bytes, trunk_bytes);  // of two tables one stays
}

}  // namespace
}  // namespace deltafin
