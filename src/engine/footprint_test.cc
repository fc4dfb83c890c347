#include "engine/footprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "memory/forecast.h"
#include "memory/plan.h"
#include "support/golden.h"

namespace deltafin::engine {
namespace {

using memory::ModelSizes;
using memory::Plan;
using memory::PlanRequest;
using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kGb = 1'000'000'000;
constexpr uint64_t kBudgets[] = {16, 24, 32, 64, 128, 256, 512};
constexpr uint64_t kContext = 8192;

ModelSizes sizes_of_config(const std::string& name) {
  const io::PosixStorage storage;
  return footprint_of(
      checkpoint::load_config(storage, test::golden_path("configs/" + name + ".json")).value());
}

PlanRequest request_of(uint64_t budget_bytes, uint64_t context = kContext) {
  return {.budget_bytes = budget_bytes, .context = context, .prompt_rows = context};
}

struct Known {
  const char* config;
  uint64_t resident_gb;    // the first of kBudgets that holds the whole trunk
  uint64_t floor_mb;       // at a context of 8192
  uint64_t cold_kb;        // experts that a token reads
  uint64_t everything_gb;  // the first of kBudgets that holds all experts too; 0: none
};

// A floor has the output head, two layers at a time and what little has to stand beside them. All
// run under 16 GB, K3's trunk of 111.2 GB too.
constexpr Known kModels[] = {
    {"kimi-k3", 128, 9'169, 25'829'572, 0},
    {"kimi-linear-48b", 16, 1'614, 2'944'401, 128},
    {"qwen3.5-35b-a3b", 16, 1'801, 2'013'265, 128},
    {"qwen3.5-122b-a10b", 16, 2'915, 7'247'757, 256},
    {"qwen3.5-397b-a17b", 24, 3'850, 15'099'494, 0},
    {"qwen3-30b-a3b", 16, 2'505, 3'623'878, 64},
};

TEST(PlanOfAPublishedModel, WorksFromItsFloorOn) {
  for (const Known& known : kModels) {
    SCOPED_TRACE(known.config);
    const ModelSizes sizes = sizes_of_config(known.config);
    const uint64_t floor = memory::plan_floor(sizes, request_of(0));
    EXPECT_EQ(floor / 1'000'000, known.floor_mb);
    EXPECT_EQ(sizes.cold_bytes_of_a_token() / 1000, known.cold_kb);
    EXPECT_TRUE(memory::make_plan(sizes, request_of(floor)));
    EXPECT_FALSE(memory::make_plan(sizes, request_of(floor - 1)));
    for (const uint64_t gb : kBudgets) {
      const Result<Plan> plan = memory::make_plan(sizes, request_of(gb * kGb));
      ASSERT_TRUE(plan) << gb;
      EXPECT_EQ(plan->trunk_streamed_bytes == 0, gb >= known.resident_gb) << gb;
      EXPECT_LE(plan->planned_bytes(), gb * kGb);
      const bool has_all = plan->expert_slots == sizes.expert_count;
      EXPECT_EQ(has_all, known.everything_gb != 0 && gb >= known.everything_gb) << gb;
      // Every prompt of the context in one pass, but close to the floor.
      if (gb >= 2 * known.resident_gb) {
        EXPECT_EQ(plan->prefill_rows, kContext) << gb;
      }
    }
  }
}

TEST(PlanOfAPublishedModel, GivesNothingLessWhenThereIsMore) {
  constexpr uint64_t kStep = 61'803'399;  // no multiple of a row or a slot
  for (const Known& known : kModels) {
    SCOPED_TRACE(known.config);
    const ModelSizes sizes = sizes_of_config(known.config);
    Plan before;
    for (uint64_t bytes = known.floor_mb * 1'000'000; bytes < 520 * kGb; bytes += kStep) {
      const Result<Plan> plan = memory::make_plan(sizes, request_of(bytes));
      if (!plan) continue;
      ASSERT_LE(plan->planned_bytes(), bytes);
      ASSERT_GE(plan->prefill_rows, before.prefill_rows) << bytes;
      ASSERT_GE(plan->expert_slots, before.expert_slots) << bytes;
      ASSERT_GE(plan->trunk_resident_layers, before.trunk_resident_layers) << bytes;
      ASSERT_LE(plan->expert_slots, sizes.expert_count);
      ASSERT_LE(plan->prefill_rows, kContext);
      // Nothing lies idle that somebody could use.
      const uint64_t weights = plan->trunk_streamed_bytes > 0
                                   ? std::ranges::max(sizes.trunk_layer_bytes)
                                   : sizes.expert_slot_bytes;
      if (plan->expert_slots < sizes.expert_count) {
        ASSERT_LT(plan->unassigned_bytes(), weights + sizes.activation_bytes_per_row);
      }
      before = *plan;
    }
  }
}

TEST(PlanOfAPublishedModel, IsRefusedWithNumbersAndAWayOut) {
  const Result<Plan> plan =
      memory::make_plan(sizes_of_config("kimi-k3"), request_of(64 * kGb, 1'048'576));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::OverBudget);
  EXPECT_THAT(plan.error().what,
              AllOf(HasSubstr("this needs at least 66.70 GB of memory and 64.00 GB is allowed\n"),
                    HasSubstr("trunk 7.09 GB, its layers read again for every pass, "
                              "state of 1 x 1048576 positions 58.91 GB"),
                    HasSubstr("try: --context 999424, or --memory 66.7GB")));
}

TEST(PlanOfAPublishedModel, KnowsTheContextThatWouldFit) {
  const ModelSizes sizes = sizes_of_config("qwen3.5-122b-a10b");
  const PlanRequest wanted = request_of(4 * kGb, 262'144);
  const Result<Plan> refused = memory::make_plan(sizes, wanted);
  ASSERT_FALSE(refused);
  const uint64_t context = memory::largest_context(sizes, wanted);
  EXPECT_THAT(refused.error().what, HasSubstr("--context " + std::to_string(context) + ", or"));
  EXPECT_TRUE(memory::make_plan(sizes, request_of(4 * kGb, context)));
  EXPECT_FALSE(memory::make_plan(sizes, request_of(4 * kGb, context + 1)));
}

TEST(ForecastOfAPublishedModel, IsWhatTheDiskCanDo) {
  const ModelSizes sizes = sizes_of_config("kimi-k3");
  const PlanRequest request = request_of(128 * kGb);
  const Plan plan = memory::make_plan(sizes, request).value();
  const memory::MachineRates rates = {.disk_bytes = 7e9, .ram_bytes = 50e9};
  const memory::DecodeForecast decode = forecast_decode(sizes, plan, request, rates);
  EXPECT_NEAR(decode.expected_bytes, 25.7e9, 0.1e9);
  ASSERT_TRUE(decode.time);
  EXPECT_EQ(decode.time->limit, memory::Limit::Disk);
  // 111 GB of trunk at 50 GB/s, and 25.7 GB of experts at 7 GB/s.
  EXPECT_NEAR(decode.time->seconds, 2.3 + 3.67, 0.1);
  // A prompt of 8192 tokens uses every expert; in one pass it reads 1.45 TB once.
  const memory::PrefillForecast prefill = forecast_prefill(sizes, plan, 8192, rates);
  EXPECT_EQ(prefill.passes, 1u);
  EXPECT_NEAR(prefill.disk_bytes, 1.446e12, 0.01e12);
  ASSERT_TRUE(prefill.time);
  EXPECT_NEAR(prefill.time->seconds, 1.446e12 / 7e9, 5);
}

TEST(Footprint, FromTheShardsIsNoMoreThanFromTheConfig) {
  const std::string directory = test::source_path("models/demo");
  const io::PosixStorage storage;
  const checkpoint::Checkpoint checkpoint =
      checkpoint::Checkpoint::open(storage, directory).value();
  const ModelSizes exact = footprint_of(checkpoint), expected = footprint_of(checkpoint.contract());
  EXPECT_LE(exact.trunk_bytes(), expected.trunk_bytes());
  EXPECT_EQ(exact.trunk_layer_bytes.size(), 8u);
  EXPECT_EQ(exact.trunk_bytes_of_a_token, expected.trunk_bytes_of_a_token);
  EXPECT_EQ(exact.expert_bytes, expected.expert_bytes);
  EXPECT_LE(exact.expert_slot_bytes, expected.expert_slot_bytes);
  EXPECT_GT(exact.expert_slot_bytes, exact.expert_bytes);
  EXPECT_EQ(exact.expert_count, 7u * 64u);
  EXPECT_EQ(exact.state_bytes_per_position, 512u);
}

}  // namespace
}  // namespace deltafin::engine
