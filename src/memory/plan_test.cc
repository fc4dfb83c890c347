#include "memory/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/forecast.h"

namespace deltafin::memory {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Round numbers: a floor of 1000 + 5000 + 2 x 100 + 512 x 2 + 64 x 10 + 4 x 50 = 8064.
ModelSizes small_model() {
  return {.overhead_bytes = 1000,
          .trunk_fixed_bytes = 1000,
          .trunk_layer_bytes = {4000},
          .trunk_bytes_of_a_token = 4000,
          .experts_of_layers = {10, 10},
          .expert_count = 20,
          .experts_per_token = 4,
          .expert_bytes = 40,
          .expert_slot_bytes = 50,
          .active_parameters = 1000,
          .state_fixed_bytes = 100,
          .state_bytes_per_position = 2,
          .activation_bytes_per_row = 10};
}

PlanRequest request_of(uint64_t budget_bytes) {
  return {.budget_bytes = budget_bytes, .context = 500, .prompt_rows = 200};
}

TEST(Plan, AtTheFloorHasTheLeastOfEverything) {
  const Plan plan = make_plan(small_model(), request_of(8064)).value();
  EXPECT_EQ(plan.floor_bytes, 8064u);
  EXPECT_EQ(plan.overhead_bytes, 1000u);
  EXPECT_EQ(plan.trunk_resident_bytes, 5000u);
  EXPECT_EQ(plan.trunk_streamed_bytes, 0u);
  EXPECT_EQ(plan.state_bytes, 200u + 1024u);
  EXPECT_EQ(plan.prefill_rows, 64u);
  EXPECT_EQ(plan.expert_slots, 4u);
  EXPECT_EQ(plan.planned_bytes(), 8064u);
  EXPECT_FALSE(make_plan(small_model(), request_of(8063)));
}

TEST(Plan, HalvesWhatIsFreeUntilOneSideHasEverything) {
  const Plan both = make_plan(small_model(), request_of(8064 + 1000)).value();
  EXPECT_EQ(both.prefill_rows, 64u + 50u);
  EXPECT_EQ(both.expert_slots, 4u + 10u);
  // All experts are 16 slots more; rows get the rest.
  const Plan experts = make_plan(small_model(), request_of(8064 + 2000)).value();
  EXPECT_EQ(experts.expert_slots, 20u);
  EXPECT_EQ(experts.prefill_rows, 64u + 120u);
  const Plan everything = make_plan(small_model(), request_of(100'000)).value();
  EXPECT_EQ(everything.prefill_rows, 200u);
  EXPECT_EQ(everything.unassigned_bytes(), 100'000u - 8064u - 1360u - 800u);
}

TEST(Plan, NeverExceedsItsBudgetAndNeverShrinks) {
  Plan before;
  for (uint64_t budget = 8064; budget < 13'000; ++budget) {
    const Plan plan = make_plan(small_model(), request_of(budget)).value();
    ASSERT_LE(plan.planned_bytes(), budget);
    ASSERT_GE(plan.prefill_rows, before.prefill_rows);
    ASSERT_GE(plan.expert_slots, before.expert_slots);
    before = plan;
  }
}

// Beside 1064 + 3000 that stand anyway: two buffers of the largest layer at least.
ModelSizes layered_model() {
  ModelSizes sizes = small_model();
  sizes.trunk_layer_bytes = {900, 500, 500, 500, 500, 500, 500};
  return sizes;
}

TEST(Plan, StreamsTheLayersThatDoNotFit) {
  const ModelSizes sizes = layered_model();
  // The largest layer is the first: to keep it and stream the rest takes less than not to.
  const uint64_t others = 1000 + 1000 + 1224 + 640 + 200;
  const uint64_t floor = plan_floor(sizes, request_of(0));
  EXPECT_EQ(floor, others + 2 * 900);
  const Plan least = make_plan(sizes, request_of(floor)).value();
  EXPECT_EQ(least.trunk_resident_layers, 0u);
  EXPECT_EQ(least.trunk_resident_bytes, 1000u);
  EXPECT_EQ(least.trunk_buffer_bytes, 1800u);
  EXPECT_EQ(least.trunk_streamed_bytes, 3900u);
  EXPECT_EQ(least.planned_bytes(), floor);
  // Half of 600 for rows; the other keeps the first layer, whose buffers others need less of.
  const Plan more = make_plan(sizes, request_of(floor + 600)).value();
  EXPECT_EQ(more.prefill_rows, 64u + 30u);
  EXPECT_EQ(more.trunk_resident_layers, 1u);
  EXPECT_EQ(more.trunk_buffer_bytes, 1000u);
  EXPECT_EQ(more.trunk_streamed_bytes, 3000u);
  EXPECT_EQ(more.expert_slots, 4u);
}

TEST(Plan, KeepsExpertsOnlyBesideAWholeTrunk) {
  const ModelSizes sizes = layered_model();
  PlanRequest request = request_of(0);
  request.prompt_rows = 64;  // rows have all they can use
  const uint64_t floor = plan_floor(sizes, request), rest = 3900 - 1800;
  request.budget_bytes = floor + rest - 1;
  EXPECT_GT(make_plan(sizes, request)->trunk_streamed_bytes, 0u);
  EXPECT_EQ(make_plan(sizes, request)->expert_slots, 4u);
  request.budget_bytes = floor + rest + 100;
  const Plan whole = make_plan(sizes, request).value();
  EXPECT_EQ(whole.trunk_streamed_bytes, 0u);
  EXPECT_EQ(whole.trunk_buffer_bytes, 0u);
  EXPECT_EQ(whole.trunk_resident_layers, 7u);
  EXPECT_EQ(whole.expert_slots, 4u + 2u);
}

TEST(Plan, OfAStreamedTrunkNeverExceedsItsBudgetAndNeverShrinks) {
  const ModelSizes sizes = layered_model();
  Plan before;
  before.trunk_streamed_bytes = UINT64_MAX;
  for (uint64_t budget = plan_floor(sizes, request_of(0)); budget < 13'000; ++budget) {
    const Plan plan = make_plan(sizes, request_of(budget)).value();
    ASSERT_LE(plan.planned_bytes(), budget);
    ASSERT_GE(plan.prefill_rows, before.prefill_rows);
    ASSERT_GE(plan.trunk_resident_layers, before.trunk_resident_layers);
    ASSERT_LE(plan.trunk_streamed_bytes, before.trunk_streamed_bytes);
    ASSERT_GE(plan.expert_slots, before.expert_slots);
    before = plan;
  }
  EXPECT_EQ(before.trunk_streamed_bytes, 0u);
}

TEST(Plan, CountsTheStateOfEveryRequest) {
  PlanRequest request = request_of(100'000);
  request.requests = 3;
  request.context = 513;  // two pages
  EXPECT_EQ(make_plan(small_model(), request)->state_bytes, 3u * (200u + 2 * 1024u));
}

TEST(Plan, TakesTheFlagsWordAndCountsIt) {
  PlanRequest request = request_of(100'000);
  request.expert_cache_bytes = 333;
  request.prefill_rows = 7;
  const Plan plan = make_plan(small_model(), request).value();
  EXPECT_EQ(plan.expert_slots, 6u);
  EXPECT_EQ(plan.prefill_rows, 7u);
  EXPECT_EQ(plan.floor_bytes, 1000u + 5000u + 1224u + 6 * 50u + 7 * 10u);
  request.budget_bytes = plan.floor_bytes - 1;
  const Result<Plan> refused = make_plan(small_model(), request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what,
              AllOf(HasSubstr("a smaller --expert-cache"), HasSubstr("fewer --prefill-rows")));
}

TEST(Plan, HasRoomForTwoExpertsAtLeastAndAllAtMost) {
  PlanRequest request = request_of(100'000);
  request.expert_cache_bytes = 0;
  EXPECT_EQ(make_plan(small_model(), request)->expert_slots, 2u);
  request.expert_cache_bytes = 1'000'000;
  EXPECT_EQ(make_plan(small_model(), request)->expert_slots, 20u);
}

TEST(Plan, OfADenseModelHasNoSlots) {
  ModelSizes sizes = small_model();
  sizes.experts_of_layers = {};
  sizes.expert_count = sizes.experts_per_token = 0;
  sizes.expert_bytes = sizes.expert_slot_bytes = 0;
  const Plan plan = make_plan(sizes, request_of(100'000)).value();
  EXPECT_EQ(plan.expert_slots, 0u);
  EXPECT_EQ(plan.prefill_rows, 200u);
}

TEST(Plan, RefusesWhatNoMachineHolds) {
  PlanRequest request = request_of(UINT64_MAX - 1);
  request.context = UINT64_MAX / 2;
  request.requests = UINT64_MAX;
  EXPECT_FALSE(make_plan(small_model(), request));
}

TEST(Plan, AdvisesInTheWordsOfTheCommand) {
  PlanRequest request = request_of(8064);
  request.context = 1024;
  request.context_flag = "--max-tokens";
  request.context_before_flag = 200;
  const Result<Plan> refused = make_plan(small_model(), request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("try: --max-tokens 312, or --memory 1MB"));
  request.context_before_flag = 512;  // no answer would be left
  EXPECT_THAT(make_plan(small_model(), request).error().what, Not(HasSubstr("--max-tokens")));
}

// -----------------------------------------------------------------------------------------
// forecast
// ---

TEST(Forecast, OfExpertsIsTheOneOfUniformRouting) {
  EXPECT_DOUBLE_EQ(distinct_experts(10, 4, 1), 4.0);
  EXPECT_DOUBLE_EQ(distinct_experts(10, 4, 2), 6.4);
  EXPECT_NEAR(distinct_experts(896, 16, 512), 895.9, 0.1);
  EXPECT_DOUBLE_EQ(distinct_experts(0, 0, 5), 0.0);
}

TEST(Forecast, OfATokenAddsTrunkAndDisk) {
  const ModelSizes sizes = small_model();
  const PlanRequest request = request_of(8064 + 600);  // 4 + 6 of 20 experts
  const Plan plan = make_plan(sizes, request).value();
  const DecodeForecast slow =
      forecast_decode(sizes, plan, request, {.disk_bytes = 16.0, .ram_bytes = 5100.0});
  EXPECT_EQ(slow.cold_bytes, 2u * 4u * 40u);
  EXPECT_DOUBLE_EQ(slow.resident_share, 0.5);
  EXPECT_DOUBLE_EQ(slow.expected_bytes, 160);
  EXPECT_DOUBLE_EQ(slow.ram_bytes, 4000 + 100 + 1000 + 320);
  ASSERT_TRUE(slow.time);
  EXPECT_DOUBLE_EQ(slow.time->seconds, 1.0 + 10.0);
  EXPECT_EQ(slow.time->limit, Limit::Disk);
  const DecodeForecast fast =
      forecast_decode(sizes, plan, request, {.disk_bytes = 1e9, .ram_bytes = 5420.0});
  EXPECT_DOUBLE_EQ(fast.time->seconds, 1.0);
  EXPECT_EQ(fast.time->limit, Limit::Memory);
}

TEST(Forecast, SaysNoTimeWhereARateIsMissingThatMatters) {
  const ModelSizes sizes = small_model();
  const PlanRequest some = request_of(8064), all = request_of(100'000);
  const MachineRates no_disk = {.ram_bytes = 1000.0};
  EXPECT_FALSE(forecast_decode(sizes, *make_plan(sizes, some), some, no_disk).time);
  EXPECT_TRUE(forecast_decode(sizes, *make_plan(sizes, all), all, no_disk).time);
  // Before the first token every expert has to be read once.
  EXPECT_FALSE(forecast_prefill(sizes, *make_plan(sizes, all), 100, no_disk).time);
  EXPECT_FALSE(forecast_decode(sizes, *make_plan(sizes, all), all, {}).time);
}

TEST(Forecast, ReadsTheLayersThatDoNotStayForEveryPass) {
  const ModelSizes sizes = layered_model();
  PlanRequest request = request_of(plan_floor(sizes, request_of(0)));
  const Plan plan = make_plan(sizes, request).value();
  const MachineRates rates = {.disk_bytes = 100.0, .ram_bytes = 1e9};
  const DecodeForecast decode = forecast_decode(sizes, plan, request, rates);
  EXPECT_DOUBLE_EQ(decode.expected_bytes, 3900 + 320 * 0.8);
  EXPECT_NEAR(decode.time->seconds, (3900 + 320 * 0.8) / 100, 1e-3);
  EXPECT_EQ(decode.time->limit, Limit::Disk);
  const PrefillForecast prefill = forecast_prefill(sizes, plan, 64 + 64 + 1, rates);
  EXPECT_NEAR(prefill.disk_bytes, (20 + 20 + 8) * 40 + 3 * 3900, 0.01);
}

TEST(Forecast, OfAPromptReadsEachExpertOnceAPass) {
  const ModelSizes sizes = small_model();
  const Plan plan = make_plan(sizes, request_of(8064)).value();  // 64 rows, 4 slots
  const MachineRates rates = {.disk_bytes = 100.0, .ram_bytes = 1e9};
  const PrefillForecast one = forecast_prefill(sizes, plan, 64, rates);
  EXPECT_EQ(one.passes, 1u);
  EXPECT_NEAR(one.disk_bytes, 20 * 40, 0.01);
  const PrefillForecast three = forecast_prefill(sizes, plan, 64 + 64 + 1, rates);
  EXPECT_EQ(three.passes, 3u);
  EXPECT_NEAR(three.disk_bytes, (20 + 20 + 8) * 40, 0.01);
  EXPECT_NEAR(three.time->seconds, 48 * 40 / 100.0, 0.01);
  EXPECT_EQ(three.time->limit, Limit::Disk);
}

TEST(Forecast, OfAPromptWhoseExpertsStayReadsThemOnce) {
  const ModelSizes sizes = small_model();
  PlanRequest request = request_of(100'000);
  request.prefill_rows = 64;
  const Plan plan = make_plan(sizes, request).value();
  const PrefillForecast prefill = forecast_prefill(sizes, plan, 200, {.disk_bytes = 100.0});
  EXPECT_EQ(prefill.passes, 4u);
  EXPECT_NEAR(prefill.disk_bytes, 20 * 40, 0.01);
}

TEST(Forecast, OfAPromptIsTheSlowestOfThree) {
  const ModelSizes sizes = small_model();
  const Plan plan = make_plan(sizes, request_of(8064)).value();
  const PrefillForecast ram =
      forecast_prefill(sizes, plan, 64, {.disk_bytes = 1e9, .ram_bytes = 480.0});
  EXPECT_EQ(ram.time->limit, Limit::Memory);
  EXPECT_NEAR(ram.time->seconds, 10, 0.01);
  const PrefillForecast arithmetic = forecast_prefill(
      sizes, plan, 64, {.disk_bytes = 1e9, .ram_bytes = 480.0, .operations = 1000.0});
  EXPECT_EQ(arithmetic.time->limit, Limit::Arithmetic);
  EXPECT_DOUBLE_EQ(arithmetic.time->seconds, 128);
}

}  // namespace
}  // namespace deltafin::memory
