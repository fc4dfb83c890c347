// The promise: the logits are a pure function of (checkpoint bytes, token ids). Everything that may
// be switched is switched, and the bits are compared with memcmp.
#include <gtest/gtest.h>

#include <cstring>

#include "base/philox.h"
#include "engine/pass.h"
#include "support/engine_fixture.h"
#include "support/golden.h"
#include "support/same_bits.h"

namespace deltafin {
namespace {

using engine::EngineOptions;
using engine::LogitsOf;
using engine::Pass;
using engine::PassMode;
using engine::PassRequest;
using engine::Sequence;
using test::EngineFixture;
using test::expect_same_bits;

struct Subject {
  const char* checkpoint;
  const char* golden;
  const char* ids;
};

constexpr Subject kSubjects[] = {
    {"tiny-k3", "golden-k3", "p2.ids"},
    {"tiny-kimi-linear", "golden-kimi-linear", "p2.ids"},
    {"wide-k3", "golden-wide-k3", "p0.ids"},
    {"tiny-qwen3.5-moe", "tiny-qwen3.5-moe/goldens", "p2.ids"},
    {"tiny-qwen3-moe", "tiny-qwen3-moe/goldens", "p2.ids"},
    {"tiny-qwen3", "tiny-qwen3/goldens", "p2.ids"},
};

std::vector<TokenId> ids_of(const Subject& subject) {
  return test::to_tokens(test::Golden(subject.golden).i32(subject.ids));
}

// The oracle: one token at a time, one thread, the baseline kernels, the smallest cache.
std::vector<float> slow_logits(const Subject& subject, std::span<const TokenId> ids) {
  EngineOptions options;
  options.kernels = &numerics::kernel_variants()[0];
  options.expert_cache_bytes = 1;
  options.hints = memory::Hints::All;
  EngineFixture fixture(test::golden_path(subject.checkpoint), options);
  Sequence sequence = fixture.engine().new_sequence();
  return test::all_logits(fixture.engine(), sequence, ids, 1);
}

class Equivalence : public testing::TestWithParam<Subject> {
 protected:
  std::vector<TokenId> ids_ = ids_of(GetParam());
  std::vector<float> expected_ = slow_logits(GetParam(), ids_);

  std::vector<float> logits_with(const EngineOptions& options, size_t rows_per_pass) {
    EngineFixture fixture(test::golden_path(GetParam().checkpoint), options);
    Sequence sequence = fixture.engine().new_sequence();
    return test::all_logits(fixture.engine(), sequence, ids_, rows_per_pass);
  }
};

INSTANTIATE_TEST_SUITE_P(Checkpoints, Equivalence, testing::ValuesIn(kSubjects),
                         [](const testing::TestParamInfo<Subject>& subject) {
                           std::string name = subject.param.checkpoint;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

TEST_P(Equivalence, ChunkingOfThePromptDoesNotChangeABit) {
  for (const size_t rows : {1u, 2u, 3u, 7u, 8u, 16u, 64u, 257u})
    expect_same_bits(logits_with({}, rows), expected_, "rows per pass " + std::to_string(rows));
}

TEST_P(Equivalence, InstructionSetAndThreadsDoNotChangeABit) {
  for (const numerics::Kernels& kernels : numerics::kernel_variants()) {
    for (const size_t threads : {1u, 2u, 3u, 8u}) {
      EngineOptions options;
      options.kernels = &kernels;
      options.thread_count = threads;
      expect_same_bits(logits_with(options, 16), expected_,
                       std::string(kernels.name) + ", threads " + std::to_string(threads));
    }
  }
}

TEST_P(Equivalence, CacheSizeDoesNotChangeABit) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{40'000}, uint64_t{1} << 30}) {
    EngineOptions options;
    options.expert_cache_bytes = bytes;
    options.hints = memory::Hints::All;
    for (const size_t rows : {1u, 64u})
      expect_same_bits(logits_with(options, rows), expected_, "cache " + std::to_string(bytes));
  }
}

TEST_P(Equivalence, LayersThatAreStreamedDoNotChangeABit) {
  for (const uint32_t resident : {0u, 1u, 2u, 3u}) {
    EngineOptions options;
    options.resident_layers = resident;
    for (const size_t rows : {1u, 64u})
      expect_same_bits(logits_with(options, rows), expected_,
                       "resident layers " + std::to_string(resident));
  }
}

// One pass over rows of three sequences at different positions gives each what it gets alone.
TEST_P(Equivalence, OtherSequencesInThePassDoNotChangeABit) {
  EngineFixture fixture(test::golden_path(GetParam().checkpoint));
  engine::Engine& engine = fixture.engine();
  const CancelToken never;
  const size_t vocab = engine.vocab_size(), half = ids_.size() / 2;
  std::vector<Sequence> sequences;
  for (int i = 0; i < 3; ++i) sequences.push_back(engine.new_sequence());
  test::all_logits(engine, sequences[1], std::span(ids_).first(half), half);
  test::all_logits(engine, sequences[2], std::span(ids_).first(3), 3);
  const PassRequest requests[] = {
      {.sequence = &sequences[0], .tokens = std::span(ids_).first(5), .logits = LogitsOf::AllRows},
      {.sequence = &sequences[1],
       .tokens = std::span(ids_).subspan(half, 1),
       .logits = LogitsOf::LastRow},
      {.sequence = &sequences[2],
       .tokens = std::span(ids_).subspan(3, 4),
       .mode = PassMode::Verify,
       .logits = LogitsOf::AllRows},
  };
  const Pass pass = test::value_of(engine::run_pass(engine, requests, never));
  const auto expect_row = [&](size_t request, size_t row, size_t position) {
    EXPECT_EQ(std::memcmp(pass.logits(request, row).data(), expected_.data() + position * vocab,
                          vocab * sizeof(float)),
              0)
        << "request " << request << " row " << row;
  };
  for (size_t row = 0; row < 5; ++row) expect_row(0, row, row);
  expect_row(1, 0, half);
  for (size_t row = 0; row < 4; ++row) expect_row(2, row, 3 + row);
}

// Two passes over two sequences, advanced alternately, layer by layer.
TEST_P(Equivalence, InterleavedPassesDoNotChangeABit) {
  EngineOptions options;
  options.resident_layers = 1;  // the others are streamed, for both
  EngineFixture fixture(test::golden_path(GetParam().checkpoint), options);
  engine::Engine& engine = fixture.engine();
  const CancelToken never;
  const size_t vocab = engine.vocab_size();
  Sequence a = engine.new_sequence(), b = engine.new_sequence();
  const PassRequest first{.sequence = &a, .tokens = ids_, .logits = LogitsOf::AllRows};
  const PassRequest second{.sequence = &b, .tokens = std::span(ids_).first(1)};
  Pass slow = test::value_of(Pass::begin(engine, std::span(&first, 1)));
  Pass quick = test::value_of(Pass::begin(engine, std::span(&second, 1)));
  while (!slow.layers_finished()) {
    ASSERT_TRUE(slow.advance_layer(never));
    // The decode pass overtakes: two of its layers for one of the prefill's.
    for (int i = 0; i < 2 && !quick.layers_finished(); ++i) ASSERT_TRUE(quick.advance_layer(never));
  }
  ASSERT_TRUE(quick.finish(never));
  ASSERT_TRUE(slow.finish(never));
  EXPECT_EQ(std::memcmp(quick.logits(0, 0).data(), expected_.data(), vocab * sizeof(float)), 0);
  for (size_t row = 0; row < ids_.size(); ++row)
    EXPECT_EQ(std::memcmp(slow.logits(0, row).data(), expected_.data() + row * vocab,
                          vocab * sizeof(float)),
              0)
        << row;
}

// A verify pass with rejected drafts: whatever prefix is committed, the future is as if only it had
// run.
TEST_P(Equivalence, CommitOfAnyPrefixOfAVerifyPassDoesNotChangeABit) {
  EngineFixture fixture(test::golden_path(GetParam().checkpoint));
  engine::Engine& engine = fixture.engine();
  const CancelToken never;
  const size_t vocab = engine.vocab_size(), base = 6, drafts = 8;
  for (size_t accepted = 0; accepted <= drafts; ++accepted) {
    Sequence sequence = engine.new_sequence();
    test::all_logits(engine, sequence, std::span(ids_).first(base), base);
    // The right tokens up to `accepted`, then wrong ones.
    std::vector<TokenId> tokens(ids_.begin() + base, ids_.begin() + base + drafts);
    for (size_t i = accepted; i < drafts; ++i) tokens[i] = (tokens[i] + 7) % TokenId(vocab);
    const PassRequest verify{.sequence = &sequence,
                             .tokens = tokens,
                             .mode = PassMode::Verify,
                             .logits = LogitsOf::AllRows};
    {
      Pass pass = test::value_of(engine::run_pass(engine, std::span(&verify, 1), never));
      pass.commit(0, accepted);
    }
    ASSERT_EQ(sequence.position_count(), base + accepted);
    const std::vector<float> rest =
        test::all_logits(engine, sequence, std::span(ids_).subspan(base + accepted), 3);
    EXPECT_EQ(std::memcmp(rest.data(), expected_.data() + (base + accepted) * vocab,
                          rest.size() * sizeof(float)),
              0)
        << "accepted " << accepted;
  }
}

TEST_P(Equivalence, ADroppedPassHasNotHappened) {
  EngineFixture fixture(test::golden_path(GetParam().checkpoint));
  engine::Engine& engine = fixture.engine();
  const CancelToken never;
  const size_t vocab = engine.vocab_size();
  Sequence sequence = engine.new_sequence();
  test::all_logits(engine, sequence, std::span(ids_).first(5), 5);
  const std::vector<TokenId> wrong(9, 1);
  for (size_t layers = 0; layers <= engine.layer_count(); ++layers) {
    const PassRequest request{.sequence = &sequence, .tokens = wrong};
    Pass pass = test::value_of(Pass::begin(engine, std::span(&request, 1)));
    for (size_t i = 0; i < layers; ++i) ASSERT_TRUE(pass.advance_layer(never));
  }
  const std::vector<float> rest = test::all_logits(engine, sequence, std::span(ids_).subspan(5), 4);
  EXPECT_EQ(std::memcmp(rest.data(), expected_.data() + 5 * vocab, rest.size() * sizeof(float)), 0);
}

TEST_P(Equivalence, ForksGoOnIndependently) {
  EngineFixture fixture(test::golden_path(GetParam().checkpoint));
  engine::Engine& engine = fixture.engine();
  const size_t vocab = engine.vocab_size();
  Sequence parent = engine.new_sequence();
  test::all_logits(engine, parent, std::span(ids_).first(10), 10);
  Sequence child = parent.fork();
  // The parent runs away with other tokens; the child must not notice, nor the other way round.
  const std::vector<TokenId> other(4, 2);
  test::all_logits(engine, parent, other, 4);
  const std::vector<float> rest = test::all_logits(engine, child, std::span(ids_).subspan(10), 4);
  EXPECT_EQ(std::memcmp(rest.data(), expected_.data() + 10 * vocab, rest.size() * sizeof(float)),
            0);

  Sequence fresh = engine.new_sequence();
  std::vector<TokenId> diverted(ids_.begin(), ids_.begin() + 10);
  diverted.insert(diverted.end(), other.begin(), other.end());
  test::all_logits(engine, fresh, diverted, diverted.size());
  const std::vector<TokenId> next(1, 3);
  expect_same_bits(test::all_logits(engine, parent, next, 1),
                   test::all_logits(engine, fresh, next, 1), "parent after the fork");
}

std::vector<TokenId> random_ids(const engine::Engine& engine, size_t count) {
  Random random(1234);
  std::vector<TokenId> ids(count);
  for (TokenId& id : ids) id = TokenId(random.below(engine.vocab_size()));
  return ids;
}

// Long enough for a second page of the latent cache (positions 512 and on), from random tokens.
TEST(EquivalenceAcrossPages, ChunkingDoesNotChangeABit) {
  EngineFixture fixture(test::golden_path("tiny-k3"), {.thread_count = 2});
  engine::Engine& engine = fixture.engine();
  const std::vector<TokenId> ids = random_ids(engine, 560);
  Sequence one = engine.new_sequence(), two = engine.new_sequence();
  const std::vector<float> whole = test::all_logits(engine, one, ids, ids.size());
  expect_same_bits(test::all_logits(engine, two, ids, 97), whole, "chunks of 97");
}

// Grouped-query attention whose chunks are folded, with fewer key-value heads than threads: then
// the heads of a group are divided too.
TEST(EquivalenceAcrossPages, ThreadsBeyondTheKeyValueHeadsDoNotChangeABit) {
  std::vector<float> expected;
  const std::pair<size_t, size_t> threads_and_rows[] = {{1, 700}, {3, 700}, {9, 97}, {5, 257}};
  for (const auto& [threads, rows] : threads_and_rows) {
    EngineFixture fixture(test::golden_path("tiny-qwen3"), {.thread_count = threads});
    engine::Engine& engine = fixture.engine();
    ASSERT_LT(engine.contract().qwen()->kv_head_count, 3u);
    const std::vector<TokenId> ids = random_ids(engine, 700);
    Sequence sequence = engine.new_sequence();
    // The last rows one at a time, as in decoding.
    std::vector<float> logits = test::all_logits(engine, sequence, std::span(ids).first(690), rows);
    const std::vector<float> last =
        test::all_logits(engine, sequence, std::span(ids).last(10), threads == 1 ? 10 : 1);
    logits.insert(logits.end(), last.begin(), last.end());
    if (expected.empty()) expected = logits;
    expect_same_bits(logits, expected,
                     "threads " + std::to_string(threads) + ", rows " + std::to_string(rows));
  }
}

}  // namespace
}  // namespace deltafin
