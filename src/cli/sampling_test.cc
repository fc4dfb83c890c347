#include "cli/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "serve/api/sampling_json.h"

namespace deltafin::cli {
namespace {

using engine::SamplingParameters;
using testing::HasSubstr;

const GenerationDefaults kDefaults = {.eos_ids = {},
                                      .temperature = 0.6f,
                                      .top_p = 0.95f,
                                      .min_p = 0.05f,
                                      .repetition_penalty = 1.1f,
                                      .top_k = 20};

TEST(Sampling, IsGreedyUnlessAskedFor) {
  const SamplingParameters p = combine({}, kDefaults, 9).value();
  EXPECT_EQ(p.temperature, 0);
  EXPECT_EQ(p.repetition_penalty, 1);
  EXPECT_EQ(describe(p), "greedy");
}

TEST(Sampling, TakesTheParametersOfTheModel) {
  SamplingFlags flags;
  flags.sample = true;
  const SamplingParameters p = combine(flags, kDefaults, 9).value();
  EXPECT_EQ(describe(p),
            "temperature 0.6, top-k 20, top-p 0.95, min-p 0.05, repetition penalty 1.1, "
            "seed 9");
}

TEST(Sampling, IsNeutralWhereTheModelSaysNothing) {
  SamplingFlags flags;
  flags.sample = true;
  EXPECT_EQ(describe(combine(flags, {}, 9).value()), "temperature 1, seed 9");
}

TEST(Sampling, FlagsOverrideTheModelAndTurnItOn) {
  SamplingFlags flags;
  flags.top_p = 0.5f;
  flags.seed = 3;
  EXPECT_EQ(describe(combine(flags, kDefaults, 9).value()),
            "temperature 0.6, top-k 20, top-p 0.5, min-p 0.05, repetition penalty 1.1, seed 3");
  SamplingFlags hot;
  hot.temperature = 2.0f;
  EXPECT_EQ(combine(hot, kDefaults, 9)->temperature, 2.0f);
}

TEST(Sampling, ATemperatureOfZeroIsGreedyWhateverElseIsSaid) {
  SamplingFlags flags;
  flags.sample = true;
  flags.temperature = 0.0f;
  EXPECT_EQ(combine(flags, {}, 9)->temperature, 0);
}

TEST(Sampling, PenaltiesAndSeedsDoNotTurnItOn) {
  SamplingFlags flags;
  flags.repetition_penalty = 1.3f;
  flags.seed = 4;
  const SamplingParameters p = combine(flags, kDefaults, 9).value();
  EXPECT_EQ(describe(p), "greedy, repetition penalty 1.3");
}

TEST(Sampling, RefusesWhatCannotBe) {
  SamplingFlags cold, empty;
  cold.temperature = -1.0f;
  empty.top_p = 0.0f;
  EXPECT_THAT(combine(cold, {}, 9).error().what, HasSubstr("--temperature is -1; expected"));
  EXPECT_EQ(combine(empty, {}, 9).error().code, ErrorCode::Usage);
  EXPECT_THAT(combine(empty, {}, 9).error().what, HasSubstr("--top-p is 0"));
}

TEST(Sampling, PrintsDecimalsAsTheyWereTyped) {
  SamplingFlags flags;
  flags.temperature = 0.6f;
  flags.seed = UINT64_MAX;
  const nlohmann::ordered_json json = serve::sampling_json(combine(flags, {}, 9).value());
  EXPECT_EQ(json.dump(),
            R"({"mode":"sample","temperature":0.6,"top_k":0,"top_p":1.0,"min_p":0.0,)"
            R"("seed":18446744073709551615,"repetition_penalty":1.0,"presence_penalty":0.0,)"
            R"("frequency_penalty":0.0})");
}

}  // namespace
}  // namespace deltafin::cli
