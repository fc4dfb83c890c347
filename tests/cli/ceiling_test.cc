// The budget is a ceiling, and the kernel is the judge: the program runs in a memory group whose
// limit is a little above its budget, and is killed if it ever needs more. Skipped where no such
// group can be made.
//
// Beside the hard judge, `peak_resident_bytes` stays below the budget itself. It is the high-water
// mark of the process, with the mapped pages of the program that the group charges to whoever read
// them first; max_usage_in_bytes is no judge, for it holds whatever pages of files there was room
// for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/philox.h"
#include "cli/process.h"
#include "support/memory_group.h"

namespace deltafin::test {
namespace {

using nlohmann::json;

// What a process costs the group beside its own memory: page tables, and the pages of files that
// the kernel is just reading.
constexpr uint64_t kBesideBudget = 64ull << 20;

struct Workload {
  std::string model;
  size_t prompt_count, answer_count;
  int minutes_at_most = 1;
};

// Every model has so many tokens.
constexpr uint64_t kTokens = 500;

std::string some_ids(size_t count) {
  Random random(5);
  std::string ids;
  for (size_t i = 0; i < count; ++i)
    ids += (i > 0 ? "," : "") + std::to_string(random.below(kTokens));
  return ids;
}

// The smallest budget that the plan allows for these numbers of tokens.
uint64_t floor_of(const Workload& work) {
  const Outcome outcome = run_program({"plan", work.model, "--json", "--memory", "1000GB",
                                       "--disk-gbps", "1", "--ram-gbps", "10", "--context",
                                       std::to_string(work.prompt_count + work.answer_count)});
  return json::parse(outcome.out).at("plan").at("floor_bytes");
}

std::vector<std::string> run_of(const Workload& work, uint64_t budget) {
  return {"run",          work.model,
          "--memory",     std::to_string(budget),
          "--ignore-eos", "--json",
          "--stats",      "--logits-digest",
          "--max-tokens", std::to_string(work.answer_count)};
}

std::vector<std::string> with_prompt(std::vector<std::string> run, const Workload& work) {
  run.insert(run.end(), {"--ids", some_ids(work.prompt_count)});
  return run;
}

MemoryGroup group_for(uint64_t budget) {
  Result<MemoryGroup> group = MemoryGroup::make(budget + kBesideBudget);
  if (!group) ADD_FAILURE() << group.error().what;
  return std::move(*group);
}

// Empty where the kernel can be asked.
std::string why_not() {
  if (kSanitized) return "not with a sanitizer";
  const Result<MemoryGroup> group = MemoryGroup::make(1ull << 30);
  return group ? "" : group.error().what;
}

// What the program reports, if it kept to its budget.
json judged(const Outcome& outcome, const MemoryGroup& group, int exit_status) {
  const uint64_t budget = group.limit_bytes() - kBesideBudget;
  EXPECT_EQ(group.kill_count(), 0u) << "killed at a budget of " << budget;
  EXPECT_EQ(outcome.exit_status, exit_status) << outcome.err;
  if (outcome.exit_status != exit_status) return {};
  json report = json::parse(outcome.out);
  const json& memory = report.at("memory");
  EXPECT_EQ(memory.at("plan").at("budget_bytes"), budget);
  EXPECT_LE(memory.at("peak_resident_bytes").get<uint64_t>(), budget) << outcome.err;
  return report;
}

json run_below(uint64_t budget, std::vector<std::string> arguments, int minutes_at_most = 1) {
  const MemoryGroup group = group_for(budget);
  const Outcome outcome = run_with({.arguments = std::move(arguments),
                                    .group_entrance = group.entrance(),
                                    .minutes_at_most = minutes_at_most});
  return judged(outcome, group, 0);
}

// Interrupts when `text` has been seen among the events.
json interrupt_below(uint64_t budget, std::vector<std::string> arguments, const std::string& text) {
  const ScratchFolder folder;
  const std::string events = folder / "events";
  arguments.insert(arguments.end(), {"--events", events});
  const MemoryGroup group = group_for(budget);
  Process process({.arguments = std::move(arguments), .group_entrance = group.entrance()});
  EXPECT_TRUE(process.wait_for_file(events, text));
  process.signal(SIGINT);
  return judged(process.finish(), group, 130);
}

// The same bits at every budget. `budgets` are multiples of the floor.
void expect_to_hold(const Workload& work, const std::vector<double>& budgets = {1, 1.05, 1.5, 3}) {
  const uint64_t floor = floor_of(work);
  std::string digest;
  for (const double times : budgets) {
    const uint64_t budget = static_cast<uint64_t>(static_cast<double>(floor) * times);
    SCOPED_TRACE(work.model + " in " + std::to_string(budget) + " bytes");
    const json report =
        run_below(budget, with_prompt(run_of(work, budget), work), work.minutes_at_most);
    ASSERT_FALSE(report.is_null());
    const std::string found = report.at("logits_digest").at("sha256");
    if (digest.empty()) digest = found;
    EXPECT_EQ(found, digest);
  }
}

class Ceiling : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_F(Ceiling, HoldsFromTheFloorUp) {
  expect_to_hold({.model = "demo", .prompt_count = 1'000, .answer_count = 48});
  expect_to_hold(
      {.model = in_repository("tests/golden/wide-k3"), .prompt_count = 500, .answer_count = 48});
}

TEST_F(Ceiling, HoldsWhenItIsInterrupted) {
  const Workload work{.model = "demo", .prompt_count = 20'000, .answer_count = 100'000};
  const uint64_t floor = floor_of(work);
  const std::vector<std::string> run = with_prompt(run_of(work, floor), work);
  EXPECT_EQ(interrupt_below(floor, run, "prefill_progress").at("stop_reason"), "interrupted");
  const Workload brief{.model = "demo", .prompt_count = 100, .answer_count = 100'000};
  const uint64_t least = floor_of(brief);
  const json report =
      interrupt_below(least, with_prompt(run_of(brief, least), brief), "\"index\":50");
  EXPECT_GT(report.at("ids").size(), 50u);
}

TEST_F(Ceiling, HoldsWithSavedStates) {
  const ScratchFolder folder;
  const std::string file = folder / "state";
  const Workload work{.model = "demo", .prompt_count = 2'000, .answer_count = 16};
  const uint64_t floor = floor_of(work);
  std::vector<std::string> saving = with_prompt(run_of(work, floor), work);
  saving.insert(saving.end(), {"--save-state", file});
  EXPECT_FALSE(run_below(floor, saving).at("saved_state").is_null());
  std::vector<std::string> loading = run_of(work, floor);
  loading.insert(loading.end(), {"--load-state", file});
  EXPECT_EQ(run_below(floor, loading).at("loaded_state").at("tokens"), 2'015);
}

// Not far above the floor nothing is refused, and below it everything.
TEST_F(Ceiling, IsRefusedJustBelowTheFloor) {
  const Workload work{.model = "demo", .prompt_count = 100, .answer_count = 4};
  const uint64_t budget = floor_of(work) - 1;
  EXPECT_EQ(run_program(with_prompt(run_of(work, budget), work)).exit_status, 4);
}

// A checkpoint of gigabytes, where weights and activations are more than the program.
TEST(CeilingFull, HoldsForALargeModel) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  const char* model = std::getenv("DELTAFIN_BENCH_MODEL");
  if (model == nullptr) GTEST_SKIP() << "DELTAFIN_BENCH_MODEL names no checkpoint";
  expect_to_hold({.model = model, .prompt_count = 600, .answer_count = 24, .minutes_at_most = 10});
  // So many rows in one pass that activations are most of what is there beside weights.
  expect_to_hold({.model = model, .prompt_count = 2'500, .answer_count = 2, .minutes_at_most = 10},
                 {3});
}

}  // namespace
}  // namespace deltafin::test
