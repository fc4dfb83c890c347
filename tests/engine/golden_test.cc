// The engine against the outside world: logits, layer outputs, routes and greedy tokens of the
// goldens.
#include "support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "support/engine_fixture.h"
#include "support/recorder.h"

namespace deltafin {
namespace {

using test::EngineFixture;
using test::Golden;

struct Case {
  const char* checkpoint;  // under the source tree
  const char* golden;
  int prompt_count;
  // What we reach, rounded up, as a ratchet; tests/golden/README.md allows 3e-4.
  double logits_ratchet;
};

constexpr Case kCases[] = {
    {"models/demo", "golden-demo", 5, 2e-4},
    {"tests/golden/tiny-k3", "golden-k3", 3, 4e-5},
    {"tests/golden/wide-k3", "golden-wide-k3", 2, 4e-5},
    {"tests/golden/tiny-kimi-linear", "golden-kimi-linear", 3, 2e-5},
};

class GoldenTest : public testing::TestWithParam<Case> {
 protected:
  EngineFixture fixture_{test::source_path(GetParam().checkpoint)};
  Golden golden_{GetParam().golden};
  engine::Engine& engine() { return fixture_.engine(); }
  static std::string prompt(int index, const char* array) {
    return "p" + std::to_string(index) + "." + array;
  }
};

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.golden;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenTest, testing::ValuesIn(kCases), case_name);

TEST_P(GoldenTest, LogitsOfEveryPositionAreWithinTheBound) {
  double worst = 0;
  for (int p = 0; p < GetParam().prompt_count; ++p) {
    const std::vector<TokenId> ids = test::to_tokens(golden_.i32(prompt(p, "ids")));
    engine::Sequence sequence = engine().new_sequence();
    const std::vector<float> logits = test::all_logits(engine(), sequence, ids, ids.size());
    worst = std::max(worst, test::max_difference(logits, golden_.f32(prompt(p, "logits"))));
  }
  std::printf("%s: largest difference of a logit %.2e (bound 3e-4)\n", GetParam().checkpoint,
              worst);
  EXPECT_LE(worst, GetParam().logits_ratchet);
}

TEST_P(GoldenTest, GreedyTokensAreExact) {
  for (int p = 0; p < GetParam().prompt_count; ++p) {
    const std::vector<TokenId> ids = test::to_tokens(golden_.i32(prompt(p, "ids")));
    std::vector<float> last;
    EXPECT_EQ(test::greedy(engine(), ids, 32, &last),
              test::to_tokens(golden_.i32(prompt(p, "greedy"))));
    EXPECT_LE(test::max_difference(last, golden_.f32(prompt(p, "greedy_last_logits"))), 3e-4);
  }
}

TEST_P(GoldenTest, RoutesAreExactAndInRouterOrder) {
  for (int p = 0; p < GetParam().prompt_count; ++p) {
    const std::vector<TokenId> ids = test::to_tokens(golden_.i32(prompt(p, "ids")));
    test::Recorder recorder;
    engine().set_observer(&recorder);
    engine::Sequence sequence = engine().new_sequence();
    test::all_logits(engine(), sequence, ids, ids.size());
    engine().set_observer(nullptr);
    const std::vector<int32_t> expected = golden_.i32(prompt(p, "route_ids"));
    const std::vector<float> weights = golden_.f32(prompt(p, "route_weights"));
    std::vector<int32_t> found;
    double worst = 0;
    for (const auto& [layer, routes] : recorder.routes)
      for (const numerics::Route& route : routes) {
        worst = std::max(worst, std::fabs(double(route.weight) - double(weights[found.size()])));
        found.push_back(int32_t(route.expert));
      }
    EXPECT_EQ(found, expected) << "prompt " << p;
    EXPECT_LE(worst, 1e-5) << "prompt " << p;
  }
}

// What trained the bundled model computes with its weights, in float32 and its own order, is what
// the engine computes with the exported files. The bound is that of rounding in the training code.
TEST(DemoModel, ComputesWhatTheTrainingCodeComputes) {
  EngineFixture fixture(test::source_path("models/demo"));
  const Golden golden("golden-demo-training");
  for (int p = 0; p < 5; ++p) {
    const std::string prompt = "p" + std::to_string(p);
    const std::vector<TokenId> ids = test::to_tokens(golden.i32(prompt + ".ids"));
    engine::Sequence sequence = fixture.engine().new_sequence();
    std::vector<float> logits = test::all_logits(fixture.engine(), sequence, ids, ids.size());
    const std::vector<float> last = golden.f32(prompt + ".last_logits");
    logits.erase(logits.begin(), logits.end() - ptrdiff_t(last.size()));
    EXPECT_LE(test::max_difference(logits, last), 1e-4) << prompt;
  }
}

// golden-demo records no layer outputs.
class LayerGoldenTest : public GoldenTest {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, LayerGoldenTest,
                         testing::ValuesIn(std::span(kCases).subspan(1)), case_name);

TEST_P(LayerGoldenTest, EveryLayersPartsMatchAtTheLastPosition) {
  const std::vector<TokenId> ids = test::to_tokens(golden_.i32("p0.ids"));
  test::Recorder recorder;
  engine().set_observer(&recorder);
  engine::Sequence sequence = engine().new_sequence();
  test::all_logits(engine(), sequence, ids, ids.size());
  engine().set_observer(nullptr);
  const size_t layers = engine().layer_count(), hidden = engine().contract().hidden_size();
  const auto last_rows = [&](const std::map<size_t, std::vector<float>>& kept) {
    std::vector<float> rows;
    for (const auto& [layer, values] : kept)
      rows.insert(rows.end(), values.end() - ptrdiff_t(hidden), values.end());
    return rows;
  };
  EXPECT_EQ(recorder.layers.size(), layers);
  EXPECT_LE(test::max_difference(last_rows(recorder.mixers), golden_.f32("p0.attn_last")), 1e-4);
  EXPECT_LE(test::max_difference(last_rows(recorder.ffns), golden_.f32("p0.ffn_last")), 1e-4);
  EXPECT_LE(test::max_difference(last_rows(recorder.layers), golden_.f32("p0.layer_last")), 1e-4);
  std::vector<float> all;
  for (const auto& [layer, values] : recorder.layers)
    all.insert(all.end(), values.begin(), values.end());
  EXPECT_LE(test::max_difference(all, golden_.f32("p0.layer_all")), 1e-4);
  const std::vector<float> final_last(recorder.final_norm.end() - ptrdiff_t(hidden),
                                      recorder.final_norm.end());
  EXPECT_LE(test::max_difference(final_last, golden_.f32("p0.final_norm_last")), 1e-4);
}

}  // namespace
}  // namespace deltafin
