// deltafin plan, and --memory of the commands that run a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace deltafin::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> plan_of(const char* config, std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      "plan", "--config", in_repository(std::string("tests/golden/configs/") + config)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(PlanCommand, ForAnotherMachineMeasuresNothing) {
  const Outcome outcome = run_program(plan_of(
      "kimi-k3.json", {"--memory", "128GB", "--disk-gbps", "7", "--ram-gbps", "50", "--json"}));
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err, IsEmpty());
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("schema"), "deltafin.plan.v1");
  EXPECT_EQ(report.at("budget").at("bytes"), 128'000'000'000);
  const json& plan = report.at("plan");
  EXPECT_EQ(plan.at("planned_bytes").get<uint64_t>() + plan.at("unassigned_bytes").get<uint64_t>(),
            128'000'000'000u);
  EXPECT_EQ(plan.at("trunk").at("streamed_bytes"), 0);
  EXPECT_EQ(report.at("rates").at("disk").at("source"), "given");
  EXPECT_TRUE(report.at("rates").at("arithmetic").is_null());
  EXPECT_EQ(report.at("decode").at("bound_by"), "disk");
  EXPECT_EQ(report.at("decode").at("cold_bytes_per_token"), 25'829'572'608);
  EXPECT_EQ(report.at("prefill").size(), 3u);
  EXPECT_EQ(report.at("prefill").at(2).at("prompt_tokens"), 8000);
  EXPECT_GT(report.at("prefill").at(2).at("seconds_to_first_token"), 200.0);
}

TEST(PlanCommand, IsRefusedBelowTheFloorWithNumbers) {
  const Outcome outcome = run_program(plan_of("kimi-k3.json", {"--memory", "6GB"}));
  EXPECT_EQ(outcome.exit_status, 4);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("needs at least 9.17 GB of memory and 6.00 GB is"),
                                 HasSubstr("  try: --memory 9.2GB\n"),
                                 HasSubstr("exit 4 (over the memory budget)")));
}

TEST(PlanCommand, WithoutShardsKnowsNoDisk) {
  const Outcome outcome = run_program(plan_of(
      "qwen3.5-122b-a10b.json", {"--memory", "24GB", "--ram-gbps", "20", "--context", "2000"}));
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("give --disk-gbps for times"), HasSubstr("7.25 GB"),
                                 HasSubstr("prompt of 1000"), testing::Not(HasSubstr("decode")),
                                 testing::Not(HasSubstr("prompt of 8000"))));
}

TEST(PlanCommand, MeasuresThisMachine) {
  const Outcome outcome = run_program({"plan", "demo", "--memory", "1GB"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  for (const char* part : {"tokens/s, bound by", "448 of 448 (100 %)", "GB/s, measured",
                           "billion operations/s, measured", "first token after"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
}

TEST(PlanCommand, WorksOnAPartialDownload) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("models/demo");
  fs::remove(model + "/model-00004-of-000009.safetensors");
  const Outcome outcome =
      run_program({"plan", model, "--memory", "1GB", "--disk-gbps", "1", "--ram-gbps", "10"});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("the checkpoint is not complete"));
}

TEST(MemoryFlag, PlansTheRunAndChangesNoBit) {
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "run",          "demo", "--prompt", "The capital of France is",
        "--max-tokens", "6",    "--json",   "--logits-digest"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(run_program(arguments).out);
  };
  const json free = run({}), planned = run({"--memory", "200MB"});
  EXPECT_GT(free.at("memory").at("plan").at("budget_bytes"), 200'000'000);
  EXPECT_GT(free.at("memory").at("peak_resident_bytes"), 1'000'000);
  const json& plan = planned.at("memory").at("plan");
  EXPECT_EQ(plan.at("budget_bytes"), 200'000'000);
  EXPECT_LE(planned.at("memory").at("peak_resident_bytes"), 200'000'000);
  EXPECT_EQ(planned.at("counters").at("expert_cache_slots"), plan.at("expert_slots"));
  EXPECT_EQ(planned.at("logits_digest"), free.at("logits_digest"));
  // What is said wins over what is planned.
  const json said = run({"--memory", "200MB", "--expert-cache", "100000"});
  EXPECT_EQ(said.at("memory").at("plan").at("expert_slots"),
            said.at("counters").at("expert_cache_slots"));
  EXPECT_LT(said.at("counters").at("expert_cache_bytes"), 100'001);
}

TEST(MemoryFlag, IsRefusedBeforeAnythingIsLoadedOrWritten) {
  const ScratchFolder folder;
  const std::string out = folder / "logits.f32";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", "demo", "--prompt", "x", "--memory", "50MB"},
           {"logits", "demo", "--prompt", "x", "--out", out, "--memory", "50MB"}}) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_status, 4);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("this needs at least"),
                                   HasSubstr("50.0 MB is allowed"), HasSubstr("try: --memory")));
  }
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(MemoryFlag, RefusesAnExpertCacheThatDoesNotFit) {
  const Outcome outcome = run_program({"run", "demo", "--prompt", "x", "--memory", "100MB",
                                       "--prefill-rows", "1", "--expert-cache", "5MB"});
  EXPECT_EQ(outcome.exit_status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("a smaller --expert-cache"));
}

}  // namespace
}  // namespace deltafin::test
