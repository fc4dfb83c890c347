#include "cli/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace deltafin::cli {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

// Eight cores with two threads each, all ours.
DoctorReport sample() {
  DoctorReport report;
  report.processor = "Some CPU";
  report.usable_isas = {"baseline", "avx2"};
  report.choice.kernels = numerics::find_kernels("baseline");
  report.cpu = {.online_count = 16, .allowed_count = 16, .core_count = 8, .quota = {}};
  report.choice.thread_count = report.cpu.usable_core_count();
  report.memory = {.total_bytes = 32'000'000'000, .available_bytes = 30'000'000'000, .limit = {}};
  report.huge_pages = HugePages::Advised;
  report.reader = "io_uring";
  return report;
}

std::string bound_of(DoctorReport report) {
  if (report.choice.threads_by == ChosenBy::Default)
    report.choice.thread_count = report.cpu.usable_core_count();
  return to_json(report).at("threads").at("bound");
}

TEST(DoctorReport, SaysWhyThereAreSoManyThreads) {
  DoctorReport report = sample();
  EXPECT_EQ(bound_of(report), "cores");
  EXPECT_THAT(to_text(report),
              HasSubstr("threads       8: one for each core; a second on its SMT"));
  EXPECT_THAT(to_text(report), HasSubstr("16 of 16 in the affinity mask: 8 physical cores"));

  report.cpu.quota = CpuQuota{.processors = 8.5, .file = "/group/cpu.max"};
  EXPECT_EQ(bound_of(report), "cores");
  EXPECT_THAT(to_text(report), HasSubstr("quota         8.5 processors, by /group/cpu.max"));
  report.cpu.quota->processors = 2.25;
  EXPECT_EQ(bound_of(report), "quota");

  report.cpu = {.online_count = 16, .allowed_count = 6, .core_count = 6, .quota = {}};
  EXPECT_EQ(bound_of(report), "affinity");
  report.cpu = {.online_count = 6, .allowed_count = 6, .core_count = 6, .quota = {}};
  EXPECT_EQ(bound_of(report), "processors");
  report.cpu = {.online_count = 512, .allowed_count = 512, .core_count = 512, .quota = {}};
  EXPECT_EQ(bound_of(report), "limit");
  report.cpu.quota = CpuQuota{.processors = 400, .file = "/group/cpu.max"};
  EXPECT_EQ(bound_of(report), "limit");
}

TEST(DoctorReport, SaysWhenThereAreMoreThreadsThanCores) {
  DoctorReport report = sample();
  report.choice.threads_by = ChosenBy::Flag;
  EXPECT_EQ(bound_of(report), "flag");
  EXPECT_THAT(to_text(report), Not(HasSubstr("wait for each other")));
  report.choice.thread_count = 9;
  EXPECT_THAT(to_text(report), HasSubstr("more than the 8 worth having"));
}

TEST(DoctorReport, SaysWhoChoseTheKernels) {
  DoctorReport report = sample();
  EXPECT_THAT(to_text(report), HasSubstr("kernels       baseline: the best of this processor"));
  EXPECT_THAT(to_text(report), HasSubstr("usable here: baseline, avx2"));
  report.choice.kernels_by = ChosenBy::Flag;
  EXPECT_THAT(to_text(report), HasSubstr("as --isa says"));
  report.choice.kernels_by = ChosenBy::Environment;
  EXPECT_THAT(to_text(report), HasSubstr("as the environment variable DELTAFIN_ISA says"));
  EXPECT_EQ(to_json(report).at("isa").at("by"), "environment");
}

TEST(DoctorReport, SaysHowTheDiskIsRead) {
  DoctorReport report = sample();
  EXPECT_THAT(to_text(report), HasSubstr("reader        io_uring: works here\n"));
  EXPECT_THAT(to_text(report), HasSubstr("direct reads  auto: where each file allows them"));
  EXPECT_EQ(to_json(report).at("reader").dump(),
            R"({"chosen":"io_uring","by":"default","why_not_io_uring":null,"direct":"auto"})");
  report.reader = "pread";
  report.why_not_uring = "io_uring does not work here: Operation not permitted";
  EXPECT_THAT(to_text(report), HasSubstr("reader        pread: io_uring does not work here: Op"));
  EXPECT_EQ(to_json(report).at("reader").at("why_not_io_uring"), report.why_not_uring);
  report.why_not_uring = "";
  report.reader_choice = {io::ReaderKind::Threads, ChosenBy::Flag, io::DirectReads::Off};
  EXPECT_THAT(to_text(report), HasSubstr("reader        pread: as --reader says\n"));
  EXPECT_THAT(to_text(report), HasSubstr("direct reads  off: everything goes through the page"));
  report.reader_choice.by = ChosenBy::Environment;
  EXPECT_THAT(to_text(report), HasSubstr("as the environment variable DELTAFIN_READER says"));
}

TEST(DoctorReport, SaysWhichLimitOfMemoryBinds) {
  DoctorReport report = sample();
  EXPECT_THAT(to_text(report), HasSubstr("memory        30.0 GB to use\n"));
  EXPECT_THAT(to_text(report), HasSubstr("limit         none\n"));
  EXPECT_TRUE(to_json(report).at("memory").at("limit").is_null());
  report.memory.limit =
      MemoryLimit{.bytes = 8'000'000'000, .used_bytes = 1'500'000'000, .file = "/group/memory.max"};
  EXPECT_THAT(to_text(report), HasSubstr("memory        6.50 GB to use\n"));
  EXPECT_THAT(to_text(report),
              HasSubstr("8.00 GB, of which 1.500 GB in use, by /group/memory.max"));
  EXPECT_EQ(to_json(report).at("memory").at("usable_bytes"), 6'500'000'000);
  report.memory = {};
  EXPECT_THAT(to_text(report), HasSubstr("memory        unknown to use\n"));
  EXPECT_TRUE(to_json(report).at("memory").at("total_bytes").is_null());
}

TEST(DoctorReport, AdvisesWhereThereAreNoHugePages) {
  DoctorReport report = sample();
  for (const HugePages fine : {HugePages::Always, HugePages::Advised, HugePages::Unknown}) {
    report.huge_pages = fine;
    EXPECT_THAT(to_text(report), Not(HasSubstr("try:")));
    EXPECT_TRUE(to_json(report).at("huge_pages").at("advice").is_null());
  }
  report.huge_pages = HugePages::Never;
  EXPECT_THAT(to_text(report), HasSubstr("try: echo madvise"));
  EXPECT_EQ(to_json(report).at("huge_pages").at("state"), "never");
}

TEST(DoctorReport, SaysWhenAnotherHasTouchedTheControlRegister) {
  DoctorReport report = sample();
  EXPECT_THAT(to_text(report), HasSubstr("floats        round to nearest, subnormals kept\n"));
  report.float_was_canonical = false;
  EXPECT_THAT(to_text(report), HasSubstr("set right"));
  EXPECT_EQ(to_json(report).at("float_control").at("canonical_at_start"), false);
}

TEST(DoctorReport, ManagesWithoutAName) {
  DoctorReport report = sample();
  report.processor = "";
  EXPECT_THAT(to_text(report), HasSubstr("processor     does not say\n"));
  EXPECT_TRUE(to_json(report).at("processor").is_null());
}

}  // namespace
}  // namespace deltafin::cli
