#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace deltafin::engine {
namespace {

using testing::HasSubstr;

TokenId choose(const std::vector<float>& logits, SamplingParameters parameters,
               uint64_t position = 0, const std::vector<TokenId>& history = {}) {
  Sampler sampler(numerics::best_kernels(), std::move(parameters));
  return sampler.choose(logits, position, history);
}

TEST(Sampler, GreedyTakesTheHighestAndOfEqualsTheLowerId) {
  EXPECT_EQ(choose({1, 3, 2}, {}), 1);
  EXPECT_EQ(choose({3, 1, 3}, {}), 0);
  EXPECT_EQ(choose({-0.0f, 0.0f}, {}), 0);
}

TEST(Sampler, IsAFunctionOfSeedChoiceAndPosition) {
  const std::vector<float> logits(64, 0.0f);
  const auto at = [&](uint64_t seed, uint32_t choice, uint64_t position) {
    return choose(logits, {.temperature = 1, .seed = seed, .choice = choice}, position);
  };
  EXPECT_EQ(at(1, 0, 5), at(1, 0, 5));
  int differences = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    differences += at(1, 0, i) != at(2, 0, i);
    differences += at(1, 0, i) != at(1, 1, i);
    differences += at(1, 0, i) != at(1, 0, i + 1);
    differences += at(1, 0, i) != at(1 + (uint64_t{1} << 32), 0, i);
  }
  EXPECT_GT(differences, 60);
}

TEST(Sampler, PinsTheTokensOfASeed) {
  // Whoever changes these changes every seeded answer ever given.
  std::vector<TokenId> tokens;
  for (uint64_t position = 0; position < 8; ++position)
    tokens.push_back(choose({0, 1, 2, 3, 2, 1, 0, -1}, {.temperature = 1, .seed = 42}, position));
  EXPECT_THAT(tokens, testing::ElementsAre(2, 6, 1, 4, 3, 3, 3, 3));
}

TEST(Sampler, FollowsTheDistribution) {
  std::map<TokenId, int> counts;
  for (uint64_t position = 0; position < 4000; ++position)
    ++counts[choose({std::log(0.5f), std::log(0.3f), std::log(0.2f)}, {.temperature = 1, .seed = 7},
                    position)];
  EXPECT_NEAR(counts[0], 2000, 150);
  EXPECT_NEAR(counts[1], 1200, 150);
  EXPECT_NEAR(counts[2], 800, 150);
}

TEST(Sampler, CutsByTopKTopPAndMinP) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.15f),
                                     std::log(0.25f)};
  const auto seen = [&](SamplingParameters parameters) {
    std::vector<TokenId> tokens;
    parameters.temperature = 1;
    for (uint64_t position = 0; position < 400; ++position) {
      const TokenId token = choose(logits, parameters, position);
      if (std::ranges::find(tokens, token) == tokens.end()) tokens.push_back(token);
    }
    return tokens;
  };
  EXPECT_THAT(seen({.top_k = 1}), testing::UnorderedElementsAre(1));
  EXPECT_THAT(seen({.top_k = 2}), testing::UnorderedElementsAre(1, 3));
  EXPECT_THAT(seen({.top_p = 0.4f}), testing::UnorderedElementsAre(1));
  EXPECT_THAT(seen({.top_p = 0.6f}),
              testing::UnorderedElementsAre(1, 3));  // the crossing one stays
  EXPECT_THAT(seen({.min_p = 0.4f}), testing::UnorderedElementsAre(1, 3));
  EXPECT_THAT(seen({}), testing::UnorderedElementsAre(0, 1, 2, 3));
}

TEST(Sampler, AppliesPenaltiesAndBiasBeforeGreedy) {
  EXPECT_EQ(choose({2, 1.5f}, {.repetition_penalty = 2}, 1, {0}), 1);
  EXPECT_EQ(choose({-1, -1.5f}, {.repetition_penalty = 2}, 1, {0}), 1);
  EXPECT_EQ(choose({2, 1.5f}, {.presence_penalty = 1}, 1, {0}), 1);
  EXPECT_EQ(choose({2, 1.5f}, {.frequency_penalty = 0.2f}, 1, {0, 0}), 0);
  EXPECT_EQ(choose({2, 1.5f}, {.frequency_penalty = 0.2f}, 1, {0, 0, 0}), 1);
  EXPECT_EQ(choose({2, 1.5f}, {.logit_bias = {{1, 1.0f}}}), 1);
}

TEST(Sampler, SurvivesATinyTemperature) {
  EXPECT_EQ(choose({1, 5, 3}, {.temperature = 1e-40f}), 1);
}

TEST(Sampler, RefusesParametersThatMeanNothing) {
  const auto refused = [](SamplingParameters parameters) {
    const Status status = validate(parameters, 10);
    return status ? std::string("accepted") : status.error().what;
  };
  EXPECT_THAT(refused({.temperature = -1}), HasSubstr("temperature is -1"));
  EXPECT_THAT(refused({.temperature = NAN}), HasSubstr("temperature"));
  EXPECT_THAT(refused({.top_p = 0}), HasSubstr("top_p"));
  EXPECT_THAT(refused({.top_p = 1.5f}), HasSubstr("top_p"));
  EXPECT_THAT(refused({.min_p = 1}), HasSubstr("min_p"));
  EXPECT_THAT(refused({.repetition_penalty = 0}), HasSubstr("repetition_penalty"));
  EXPECT_THAT(refused({.presence_penalty = INFINITY}), HasSubstr("presence_penalty"));
  EXPECT_THAT(refused({.frequency_penalty = NAN}), HasSubstr("frequency_penalty"));
  EXPECT_THAT(refused({.logit_bias = {{10, 1}}}), HasSubstr("0..9"));
  EXPECT_THAT(refused({.logit_bias = {{1, NAN}}}), HasSubstr("logit_bias"));
  EXPECT_EQ(refused({.temperature = 0.7f, .top_k = 40, .top_p = 0.9f}), "accepted");
}

TEST(LogProbability, SumsToOne) {
  const std::vector<float> logits = {1, -2, 0.5f, 3};
  double sum = 0;
  for (const float value : log_probabilities(numerics::best_kernels(), logits, {{0, 1, 2, 3}}))
    sum += std::exp(double(value));
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(MostProbable, HighestFirstAndEqualOnesByTheirIds) {
  const std::vector<float> logits = {1, 3, -2, 3, 0.5f};
  EXPECT_EQ(most_probable(logits, 3), (std::vector<TokenId>{1, 3, 0}));
  EXPECT_EQ(most_probable(logits, 9), (std::vector<TokenId>{1, 3, 0, 4, 2}));
}

}  // namespace
}  // namespace deltafin::engine
