// The Qwen families against the published modelling code, run in float64: hidden states, logits,
// routes, greedy tokens, and the state that a sequence keeps.
#include <gtest/gtest.h>

#include <cstdio>

#include "support/engine_fixture.h"
#include "support/golden.h"
#include "support/recorder.h"

namespace deltafin {
namespace {

using test::EngineFixture;
using test::Golden;

struct QwenCase {
  const char* checkpoint;  // under tests/golden
  const char* golden;
  // Largest differences that we reach, rounded up, as ratchets; the bound is 1e-3. The published
  // code's own float32 run is 2.4e-4 away.
  double hidden_ratchet, logits_ratchet;
};

constexpr QwenCase kQwenCases[] = {
    {"tiny-qwen3.5-moe", "tiny-qwen3.5-moe/goldens", 3e-4, 3e-4},
    {"tiny-qwen3-moe", "tiny-qwen3-moe/goldens", 5e-5, 5e-5},
    {"tiny-qwen3", "tiny-qwen3/goldens", 4e-5, 4e-5},
    // The same model in one file, without an index and without a head of its own.
    {"tiny-qwen3-single", "tiny-qwen3/goldens", 4e-5, 4e-5},
};
constexpr int kPrompts = 3;
constexpr double kRouterWeightBound = 1e-4;

class QwenGolden : public testing::TestWithParam<QwenCase> {
 protected:
  QwenGolden() { engine().set_observer(&recorder_); }

  engine::Engine& engine() { return fixture_.engine(); }
  std::vector<float> f32(int prompt, const std::string& array) const {
    return golden_.f32("p" + std::to_string(prompt) + "." + array);
  }
  std::vector<TokenId> tokens(int prompt, const std::string& array) const {
    return test::to_tokens(golden_.i32("p" + std::to_string(prompt) + "." + array));
  }
  bool has(int prompt, const std::string& array) const {
    return golden_.has("p" + std::to_string(prompt) + "." + array);
  }
  // The logits of every token that follows.
  std::vector<float> run(engine::Sequence& sequence, std::span<const TokenId> ids) {
    return test::all_logits(engine(), sequence, ids, ids.size());
  }
  // The routes of the last pass, against those of a golden's rows.
  void expect_routes(const std::vector<int32_t>& experts, const std::vector<float>& weights) {
    std::vector<int32_t> found;
    std::vector<float> found_weights;
    for (const auto& [layer, routes] : recorder_.routes)
      for (const numerics::Route& route : routes) {
        found.push_back(int32_t(route.expert));
        found_weights.push_back(route.weight);
      }
    EXPECT_EQ(found, experts);
    EXPECT_LE(test::max_difference(found_weights, weights), kRouterWeightBound);
  }

  Golden golden_{GetParam().golden};
  test::Recorder recorder_;
  EngineFixture fixture_{test::golden_path(GetParam().checkpoint)};
};

std::string qwen_case_name(const testing::TestParamInfo<QwenCase>& info) {
  std::string name = info.param.checkpoint;
  std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, QwenGolden, testing::ValuesIn(kQwenCases), qwen_case_name);

TEST_P(QwenGolden, LogitsOfPromptsAndOfFollowingTokensAreWithinTheBound) {
  double worst = 0;
  for (int p = 0; p < kPrompts; ++p) {
    engine::Sequence sequence = engine().new_sequence();
    const std::vector<float> prompt = run(sequence, tokens(p, "ids"));
    worst = std::max(worst, test::max_difference(prompt, f32(p, "logits.f64run")));

    // Row 0 is the prompt's last; row s follows token s - 1.
    const std::vector<TokenId> greedy = tokens(p, "greedy");
    std::vector<float> decoded(prompt.end() - ptrdiff_t(engine().vocab_size()), prompt.end());
    const std::vector<float> following =
        test::all_logits(engine(), sequence, std::span(greedy).first(greedy.size() - 1), 1);
    decoded.insert(decoded.end(), following.begin(), following.end());
    worst = std::max(worst, test::max_difference(decoded, f32(p, "decode_logits.f64run")));
  }
  std::printf("%s: largest difference of a logit %.2e (bound 1e-3)\n", GetParam().checkpoint,
              worst);
  EXPECT_LE(worst, GetParam().logits_ratchet);
}

TEST_P(QwenGolden, GreedyTokensAreExact) {
  for (int p = 0; p < kPrompts; ++p)
    EXPECT_EQ(test::greedy(engine(), tokens(p, "ids"), 32), tokens(p, "greedy"));
}

TEST_P(QwenGolden, RoutesAreExactAndInRouterOrder) {
  for (int p = 0; p < kPrompts && has(p, "router_idx"); ++p) {
    engine::Sequence sequence = engine().new_sequence();
    const std::string prompt = "p" + std::to_string(p) + ".";
    run(sequence, tokens(p, "ids"));
    expect_routes(golden_.i32(prompt + "router_idx"), f32(p, "router_weight"));

    const std::vector<TokenId> greedy = tokens(p, "greedy");
    const std::vector<int32_t> experts = golden_.i32(prompt + "decode_router_idx");
    const std::vector<float> weights = f32(p, "decode_router_weight");
    const size_t row = experts.size() / (greedy.size() - 1);
    for (size_t i = 0; i + 1 < greedy.size(); ++i) {
      run(sequence, std::span(greedy).subspan(i, 1));
      const auto first = ptrdiff_t(i * row), last = ptrdiff_t((i + 1) * row);
      expect_routes({experts.begin() + first, experts.begin() + last},
                    {weights.begin() + first, weights.begin() + last});
    }
  }
}

TEST_P(QwenGolden, HiddenStatesOfEveryLayerAndPositionAreWithinTheBound) {
  double worst = 0;
  const auto all = [](const std::map<size_t, std::vector<float>>& layers) {
    std::vector<float> values;
    for (const auto& [layer, rows] : layers) values.insert(values.end(), rows.begin(), rows.end());
    return values;
  };
  const auto compare = [&worst](const std::vector<float>& found, std::span<const float> expected) {
    worst = std::max(worst, test::max_difference(found, expected));
  };
  for (int p = 0; p < kPrompts; ++p) {
    const std::vector<TokenId> ids = tokens(p, "ids");
    engine::Sequence sequence = engine().new_sequence();
    run(sequence, ids);
    // The embedding, the output of every layer, the final norm.
    const std::vector<float> hidden = f32(p, "hidden.f64run");
    const size_t rows = ids.size() * engine().contract().hidden_size();
    compare(all(recorder_.layers), std::span(hidden).subspan(rows, hidden.size() - 2 * rows));
    compare(recorder_.final_norm, std::span(hidden).last(rows));
    if (has(p, "mixer_out.f64run")) compare(all(recorder_.mixers), f32(p, "mixer_out.f64run"));
    if (has(p, "mlp_out.f64run")) compare(all(recorder_.ffns), f32(p, "mlp_out.f64run"));
  }
  std::printf("%s: largest difference of a hidden state %.2e (bound 1e-3)\n", GetParam().checkpoint,
              worst);
  EXPECT_LE(worst, GetParam().hidden_ratchet);
}

// Recurrent state and convolution window after prompt 0, which only tiny-qwen3.5-moe has.
TEST(QwenGoldenState, IsThatOfThePublishedCode) {
  const Golden golden("tiny-qwen3.5-moe/goldens");
  EngineFixture fixture(test::golden_path("tiny-qwen3.5-moe"));
  engine::Sequence sequence = fixture.engine().new_sequence();
  const std::vector<TokenId> ids = test::to_tokens(golden.i32("p0.ids"));
  test::all_logits(fixture.engine(), sequence, ids, ids.size());

  const std::vector<float> matrices = golden.f32("p0.state.f64run");
  const size_t matrix = matrices.size() / 2;
  for (const size_t i : {0u, 1u}) {
    const std::vector<float>& found = sequence.state().recurrent(i == 0 ? 0 : 6).matrix;
    EXPECT_LE(test::max_difference(found, std::span(matrices).subspan(i * matrix, matrix)), 5e-5);
  }

  // [channel, last four inputs, oldest first]; a window is the last three rows.
  const std::vector<float> inputs = golden.f32("p0.conv_state.f64run");
  constexpr size_t kLayers[] = {0, 1, 2, 4, 5, 6};
  constexpr size_t kInputs = 4, kWindowRows = 3;
  const size_t channels = golden.shape("p0.conv_state.f64run")[1];
  for (size_t i = 0; i < std::size(kLayers); ++i) {
    std::vector<float> expected;
    for (size_t row = kInputs - kWindowRows; row < kInputs; ++row)
      for (size_t channel = 0; channel < channels; ++channel)
        expected.push_back(inputs[(i * channels + channel) * kInputs + row]);
    EXPECT_LE(test::max_difference(sequence.state().recurrent(kLayers[i]).window, expected), 1e-4);
  }
}

TEST(QwenState, ReportsItsBytesPerToken) {
  EngineFixture fixture(test::golden_path("tiny-qwen3.5-moe"));
  // Keys and values of two heads of 32 in two of eight layers, f32.
  EXPECT_EQ(fixture.engine().state_layout().bytes_per_position(), 2 * 2 * 2 * 32 * 4u);
  // Six layers: a window of three rows of 2 x 64 + 256 channels, eight matrices of 32 x 32.
  EXPECT_EQ(fixture.engine().state_layout().fixed_bytes(), 6 * (3 * 384 + 8 * 32 * 32) * 4u);
}

}  // namespace
}  // namespace deltafin
