#include "numerics/router.h"

#include <gtest/gtest.h>

#include <cmath>

namespace deltafin::numerics {
namespace {

std::vector<Route> choose(const RouterRule& rule, const std::vector<float>& logits,
                          const std::vector<float>& bias = {}) {
  std::vector<float> scratch;
  std::vector<Route> routes(rule.top_k);
  EXPECT_TRUE(choose_routes(best_kernels(), rule, logits, bias, scratch, routes));
  return routes;
}

std::vector<uint32_t> ids(const std::vector<Route>& routes) {
  std::vector<uint32_t> result;
  for (const Route& route : routes) result.push_back(route.expert);
  return result;
}

TEST(Router, OrdersByPickDescendingThenLowerId) {
  EXPECT_EQ(ids(choose({.top_k = 4}, {1, 3, 1, 3, 2})), (std::vector<uint32_t>{1, 3, 4, 0}));
}

TEST(Router, BiasSelectsButDoesNotWeigh) {
  const std::vector<Route> routes = choose({.top_k = 1, .renormalize = false}, {2, 1}, {0, 5});
  EXPECT_EQ(routes[0].expert, 1u);
  EXPECT_FLOAT_EQ(routes[0].weight, float(1 / (1 + std::exp(-1.0))));
}

TEST(Router, OrdersByTheBiasedScore) {
  // Unbiased, 0 is ahead of 1; biased, 1 is ahead. Combination follows the biased order.
  EXPECT_EQ(ids(choose({.top_k = 2}, {2, 1, -9}, {0, 1, 0})), (std::vector<uint32_t>{1, 0}));
}

TEST(Router, RenormalisesAndScales) {
  const std::vector<Route> routes = choose({.top_k = 2, .scale = 3}, {2, 2, -20});
  EXPECT_FLOAT_EQ(routes[0].weight, 1.5f);
  EXPECT_FLOAT_EQ(routes[1].weight, 1.5f);
}

TEST(Router, DoesNotRenormaliseASingleChoice) {
  EXPECT_FLOAT_EQ(choose({.top_k = 1}, {0, -20})[0].weight, 0.5f);
}

TEST(Router, SoftmaxScoresSumToOne) {
  const std::vector<Route> routes =
      choose({.top_k = 3, .score = RouterScore::Softmax, .renormalize = false}, {1, 2, 3});
  EXPECT_NEAR(routes[0].weight + routes[1].weight + routes[2].weight, 1, 1e-6);
}

TEST(Router, EqualGroupsPreferTheLower) {
  // Four groups of two with equal strength: the lower two stay.
  EXPECT_EQ(
      ids(choose({.top_k = 4, .group_count = 4, .groups_kept = 2}, std::vector<float>(8, 0.0f))),
      (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(Router, ReportsWhatIsNotFinite) {
  std::vector<float> scratch;
  std::vector<Route> routes(1);
  const RouterRule rule{.top_k = 1};
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const std::vector<float> logits = {0, bad, 1}, zero = {0, 0, 0};
    EXPECT_FALSE(choose_routes(best_kernels(), rule, logits, {}, scratch, routes));
    EXPECT_FALSE(choose_routes(best_kernels(), rule, zero, logits, scratch, routes));
  }
}

}  // namespace
}  // namespace deltafin::numerics
