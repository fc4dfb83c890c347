// What a pass refuses, and what it costs.
#include "engine/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/limits.h"
#include "model/family.h"
#include "support/engine_fixture.h"
#include "support/golden.h"

namespace deltafin::engine {
namespace {

using test::EngineFixture;
using testing::HasSubstr;

const std::string kTinyK3 = test::golden_path("tiny-k3");

std::string refusal(Engine& engine, const PassRequest& request) {
  const Result<Pass> pass = Pass::begin(engine, std::span(&request, 1));
  if (pass) return "accepted";
  EXPECT_EQ(pass.error().code, ErrorCode::Usage);
  return pass.error().what;
}

TEST(Pass, RefusesRequestsThatCannotBeRun) {
  EngineFixture fixture(kTinyK3);
  Engine& engine = fixture.engine();
  Sequence sequence = engine.new_sequence();
  const std::vector<TokenId> fine = {1, 2}, negative = {1, -1}, beyond = {1, 2, 512};
  const std::vector<TokenId> many(limits::kVerifyRows + 1, 1);
  EXPECT_THAT(refusal(engine, {.sequence = &sequence, .tokens = {}}), HasSubstr("at least one"));
  EXPECT_THAT(refusal(engine, {.sequence = &sequence, .tokens = negative}),
              HasSubstr("token id -1 at index 1 is outside the vocabulary: expected 0..511"));
  EXPECT_THAT(refusal(engine, {.sequence = &sequence, .tokens = beyond}),
              HasSubstr("token id 512 at index 2"));
  EXPECT_THAT(refusal(engine, {.sequence = &sequence, .tokens = many, .mode = PassMode::Verify}),
              HasSubstr("at most 64"));
  EXPECT_EQ(refusal(engine, {.sequence = &sequence, .tokens = fine}), "accepted");
}

TEST(Pass, GivesLogitsOfTheLastRowOrOfAllOrOfNone) {
  EngineFixture fixture(kTinyK3);
  Engine& engine = fixture.engine();
  const CancelToken never;
  const std::vector<TokenId> tokens = {5, 6, 7};
  Sequence a = engine.new_sequence(), b = engine.new_sequence(), c = engine.new_sequence();
  const PassRequest requests[] = {
      {.sequence = &a, .tokens = tokens, .logits = LogitsOf::None},
      {.sequence = &b, .tokens = tokens, .logits = LogitsOf::LastRow},
      {.sequence = &c, .tokens = tokens, .logits = LogitsOf::AllRows},
  };
  const Pass pass = test::value_of(run_pass(engine, requests, never));
  const std::span<const float> last = pass.logits(1, 2), of_all = pass.logits(2, 2);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), of_all.begin(), of_all.end()));
  EXPECT_DEATH(pass.logits(0, 2), "LogitsOf::None");
  EXPECT_DEATH(pass.logits(1, 0), "AllRows");
}

TEST(Pass, ComputesLogitsOfAnyRowsBetweenTheLastLayerAndItsEnd) {
  EngineFixture fixture(kTinyK3);
  Engine& engine = fixture.engine();
  const CancelToken never;
  const std::vector<TokenId> other = {9, 8}, tokens = {5, 6, 7, 8, 9};
  Sequence a = engine.new_sequence(), b = engine.new_sequence(), c = engine.new_sequence();
  const std::vector<float> expected = test::all_logits(engine, c, tokens, tokens.size());
  const PassRequest requests[] = {
      {.sequence = &a, .tokens = other, .logits = LogitsOf::None},
      {.sequence = &b, .tokens = tokens, .logits = LogitsOf::LastRow},
  };
  Pass pass = test::value_of(Pass::begin(engine, requests));
  const model::OwnedRows rows(2, engine.vocab_size());
  EXPECT_DEATH(static_cast<void>(pass.compute_logits(1, 0, rows.view(), never)), "layers_finished");
  while (!pass.layers_finished()) ASSERT_TRUE(pass.advance_layer(never));
  ASSERT_TRUE(pass.compute_logits(1, 2, rows.view(), never));
  EXPECT_TRUE(std::equal(rows.view().row(0), rows.view().row(0) + 2 * engine.vocab_size(),
                         expected.begin() + ptrdiff_t(2 * engine.vocab_size())));
  EXPECT_DEATH(static_cast<void>(pass.compute_logits(1, 4, rows.view(), never)), "tokens.size");
  ASSERT_TRUE(pass.finish(never));
  const std::span<const float> last = pass.logits(1, 4);
  EXPECT_TRUE(
      std::equal(last.begin(), last.end(), expected.begin() + ptrdiff_t(4 * engine.vocab_size())));
}

// The bound that decides how many rows a prefill pass may have is one.
TEST(Pass, NeedsNoMoreWorkspaceThanItsModelSays) {
  for (const char* checkpoint :
       {"tests/golden/tiny-k3", "tests/golden/tiny-kimi-linear", "tests/golden/tiny-qwen3.5-moe",
        "tests/golden/tiny-qwen3-moe", "tests/golden/tiny-qwen3", "models/demo"}) {
    constexpr size_t kRows = 600;
    constexpr uint64_t kBudget = uint64_t{100} << 20;
    EngineFixture fixture(test::source_path(checkpoint), {.activation_bytes = kBudget});
    Engine& engine = fixture.engine();
    const CancelToken never;
    Sequence sequence = engine.new_sequence();
    const std::vector<TokenId> tokens(kRows, 3);
    const PassRequest request{.sequence = &sequence, .tokens = tokens};
    test::value_of(run_pass(engine, std::span(&request, 1), never));
    const uint64_t per_row = kBudget / engine.prefill_rows();
    const uint64_t least = uint64_t{4} << 20;  // the workspace has one block, whatever is needed
    EXPECT_LE(engine.snapshot().workspace_bytes, std::max(kRows * per_row, least)) << checkpoint;
  }
}

TEST(Engine, NeedsAsMuchForARowAsThePlanSays) {
  for (const char* checkpoint : {"models/demo", "tests/golden/tiny-k3",
                                 "tests/golden/tiny-kimi-linear", "tests/golden/tiny-qwen3",
                                 "tests/golden/tiny-qwen3-moe", "tests/golden/tiny-qwen3.5-moe"}) {
    constexpr uint64_t kBudget = 1ull << 50;
    EngineFixture fixture(test::source_path(checkpoint), {.activation_bytes = kBudget});
    const uint64_t planned = model::activation_bytes_per_row(fixture.engine().contract());
    EXPECT_EQ(fixture.engine().prefill_rows(), kBudget / planned) << checkpoint;
  }
}

TEST(Engine, PrefillsAtLeastOneRowUnderAnyBudget) {
  EngineFixture fixture(kTinyK3, {.activation_bytes = 0});
  EXPECT_EQ(fixture.engine().prefill_rows(), 1u);
}

}  // namespace
}  // namespace deltafin::engine
