// What a machine has, and the environment variable that chooses an instruction set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace deltafin::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

json examined(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  arguments.insert(arguments.begin(), {"doctor", "--json"});
  const Outcome outcome =
      run_with({.arguments = std::move(arguments), .environment = std::move(environment)});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  return json::parse(outcome.out);
}

TEST(Doctor, TellsAPersonWhatWouldBeUsed) {
  const Outcome outcome = run_program({"doctor"});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_THAT(outcome.out, StartsWith("processor  "));
  for (const char* name : {"kernels", "threads", "processors", "quota", "memory", "machine",
                           "limit", "reader", "direct reads", "huge pages", "floats"})
    EXPECT_THAT(outcome.out, HasSubstr("\n" + std::string(name) + "  ")) << name;
}

TEST(Doctor, TellsAProgram) {
  const json report = examined({});
  EXPECT_EQ(report.at("schema"), "deltafin.doctor.v1");
  EXPECT_EQ(report.at("isa").at("by"), "default");
  EXPECT_EQ(report.at("isa").at("usable").front(), "baseline");
  EXPECT_EQ(report.at("isa").at("chosen"), report.at("isa").at("usable").back());
  EXPECT_EQ(report.at("threads").at("chosen"), report.at("threads").at("usable_cores"));
  EXPECT_GE(report.at("threads").at("chosen"), 1);
  EXPECT_GT(report.at("memory").at("usable_bytes"), 0);
  EXPECT_LE(report.at("memory").at("usable_bytes"), report.at("memory").at("total_bytes"));
  EXPECT_EQ(report.at("float_control").at("canonical_at_start"), true);
}

TEST(Doctor, TakesTheFlagsOfRun) {
  const json report = examined({"--isa", "baseline", "--threads", "3"});
  EXPECT_EQ(report.at("isa").at("chosen"), "baseline");
  EXPECT_EQ(report.at("isa").at("by"), "flag");
  EXPECT_EQ(report.at("threads").at("chosen"), 3);
  EXPECT_EQ(report.at("threads").at("bound"), "flag");
}

TEST(Doctor, SaysHowTheDiskWouldBeRead) {
  const json by_default = examined({}).at("reader");
  EXPECT_EQ(by_default.at("chosen") == "io_uring", by_default.at("why_not_io_uring").is_null());
  EXPECT_EQ(by_default.at("by"), "default");
  const json by_flags = examined({"--reader", "pread", "--direct", "off"}).at("reader");
  EXPECT_EQ(by_flags.at("chosen"), "pread");
  EXPECT_EQ(by_flags.at("by"), "flag");
  EXPECT_EQ(by_flags.at("direct"), "off");
  EXPECT_EQ(examined({}, {"DELTAFIN_READER=pread"}).at("reader").at("by"), "environment");
}

TEST(Doctor, SeesTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "there is only one processor here";
  CPU_ZERO(&one);
  for (size_t number = 0; CPU_COUNT(&one) == 0; ++number)
    if (CPU_ISSET(number, &before)) CPU_SET(number, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);  // what we start inherits it
  const json threads = examined({}).at("threads");
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(threads.at("processors_allowed"), 1);
  EXPECT_EQ(threads.at("chosen"), 1);
  EXPECT_EQ(threads.at("bound"), "affinity");
}

TEST(Doctor, FailsWhenTheDiskIsFull) {
  EXPECT_EQ(run_with({.arguments = {"doctor"}, .output_path = "/dev/full"}).exit_status, 5);
}

TEST(IsaVariable, ChoosesTheInstructionSet) {
  const json report = examined({}, {"DELTAFIN_ISA=baseline"});
  EXPECT_EQ(report.at("isa").at("chosen"), "baseline");
  EXPECT_EQ(report.at("isa").at("by"), "environment");
  const Outcome run = run_with({.arguments = {"run", "demo", "--ids", "1", "--json"},
                                .environment = {"DELTAFIN_ISA=baseline"}});
  EXPECT_EQ(json::parse(run.out).at("machine").at("isa"), "baseline");
}

TEST(IsaVariable, GivesWayToTheFlag) {
  EXPECT_EQ(examined({"--isa", "baseline"}, {"DELTAFIN_ISA=z80"}).at("isa").at("by"), "flag");
}

TEST(IsaVariable, IsNamedWhenItMakesNoSense) {
  const std::vector<std::vector<std::string>> commands = {
      {"doctor"},
      {"run", "demo", "--ids", "1"},
      {"logits", "demo", "--ids", "1", "--out", "/nowhere/x"}};
  for (const std::vector<std::string>& command : commands) {
    const Outcome outcome = run_with({.arguments = command, .environment = {"DELTAFIN_ISA=z80"}});
    EXPECT_EQ(outcome.exit_status, 2);
    EXPECT_THAT(outcome.out, IsEmpty());
    const std::vector<std::string> lines = lines_of(outcome.err);
    ASSERT_EQ(lines.size(), 2u) << outcome.err;
    EXPECT_THAT(lines[0],
                AllOf(StartsWith("deltafin: DELTAFIN_ISA: found \"z80\""), HasSubstr("baseline")));
    EXPECT_THAT(lines[1], HasSubstr("environment variable"));
  }
}

}  // namespace
}  // namespace deltafin::test
