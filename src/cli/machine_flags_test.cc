#include "cli/machine_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deltafin::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

CpuShare with_cores(size_t count) {
  CpuShare cpu;
  cpu.online_count = cpu.allowed_count = cpu.core_count = count;
  return cpu;
}

MachineFlags with_isa(const std::string& isa) {
  MachineFlags flags;
  flags.isa = isa;
  return flags;
}

TEST(IsaChoice, IsTheBestWhereNobodySays) {
  for (const char* variable : {static_cast<const char*>(nullptr), ""}) {
    const MachineChoice choice = choose({}, with_cores(1), variable).value();
    EXPECT_EQ(choice.kernels, &numerics::best_kernels());
    EXPECT_EQ(choice.kernels_by, ChosenBy::Default);
  }
}

TEST(IsaChoice, ObeysTheEnvironment) {
  for (const std::string& name : usable_isas()) {
    const MachineChoice choice = choose({}, with_cores(1), name.c_str()).value();
    EXPECT_EQ(choice.kernels->name, name);
    EXPECT_EQ(choice.kernels_by, ChosenBy::Environment);
  }
}

TEST(IsaChoice, ObeysTheFlagAndThenDoesNotLookAtTheEnvironment) {
  for (const char* variable : {numerics::best_kernels().name, "z80"}) {
    const MachineChoice choice = choose(with_isa("baseline"), with_cores(1), variable).value();
    EXPECT_STREQ(choice.kernels->name, "baseline");
    EXPECT_EQ(choice.kernels_by, ChosenBy::Flag);
  }
}

TEST(IsaChoice, RefusesWhatThisProcessorDoesNotHaveAndSaysWhoAsked) {
  const Result<MachineChoice> flag = choose(with_isa("avx1024"), with_cores(1), nullptr);
  ASSERT_FALSE(flag);
  EXPECT_EQ(flag.error().code, ErrorCode::Usage);
  EXPECT_THAT(flag.error().what, AllOf(HasSubstr("--isa: found \"avx1024\""), HasSubstr("baseline"),
                                       Not(HasSubstr(kIsaVariable))));
  EXPECT_FALSE(choose(with_isa(""), with_cores(1), nullptr));

  const Result<MachineChoice> variable = choose({}, with_cores(1), "AVX2 ");
  ASSERT_FALSE(variable);
  EXPECT_EQ(variable.error().code, ErrorCode::Usage);
  EXPECT_THAT(
      variable.error().what,
      AllOf(HasSubstr("DELTAFIN_ISA: found \"AVX2 \", expected one that this processor has: "
                      "baseline"),
            HasSubstr("\n  that is an environment variable: unset it")));
}

TEST(ReaderChoice, IsWhatTheFlagSaysElseTheEnvironmentElseAuto) {
  MachineFlags flags;
  for (const char* variable : {static_cast<const char*>(nullptr), ""}) {
    EXPECT_EQ(choose_reader(flags, variable)->kind, io::ReaderKind::Auto);
    EXPECT_EQ(choose_reader(flags, variable)->by, ChosenBy::Default);
    EXPECT_EQ(choose_reader(flags, variable)->direct, io::DirectReads::Auto);
  }
  EXPECT_EQ(choose_reader(flags, "io_uring")->kind, io::ReaderKind::Uring);
  EXPECT_EQ(choose_reader(flags, "pread")->by, ChosenBy::Environment);
  flags.reader = "pread";
  flags.direct = "off";
  for (const char* variable : {"io_uring", "floppy"}) {
    EXPECT_EQ(choose_reader(flags, variable)->kind, io::ReaderKind::Threads);
    EXPECT_EQ(choose_reader(flags, variable)->by, ChosenBy::Flag);
    EXPECT_EQ(choose_reader(flags, variable)->direct, io::DirectReads::Off);
  }
}

TEST(ReaderChoice, RefusesOtherNamesAndSaysWhoSaidThem) {
  MachineFlags flags;
  EXPECT_THAT(choose_reader(flags, "uring").error().what,
              AllOf(HasSubstr("DELTAFIN_READER: found \"uring\", expected auto, io_uring or pread"),
                    HasSubstr("unset it, or give --reader NAME")));
  flags.reader = "floppy";
  EXPECT_EQ(choose_reader(flags, nullptr).error().what,
            "--reader: found \"floppy\", expected auto, io_uring or pread");
  flags.reader = "auto";
  flags.direct = "yes";
  EXPECT_EQ(choose_reader(flags, nullptr).error().what,
            "--direct: found \"yes\", expected auto, on or off");
  EXPECT_EQ(choose_reader(flags, nullptr).error().code, ErrorCode::Usage);
}

TEST(ReaderChoice, OpensThatReader) {
  EXPECT_STREQ(open({.kind = io::ReaderKind::Threads})->reader->name(), "pread");
}

TEST(ThreadChoice, IsTheUsableCoresOrWhatTheFlagSays) {
  CpuShare cpu = with_cores(8);
  cpu.quota = CpuQuota{.processors = 3.9, .file = "cpu.max"};
  EXPECT_EQ(choose({}, cpu, nullptr)->thread_count, 3u);
  EXPECT_EQ(choose({}, cpu, nullptr)->threads_by, ChosenBy::Default);
  MachineFlags flags;
  flags.threads = 32;
  EXPECT_EQ(choose(flags, cpu, nullptr)->thread_count, 32u);
  EXPECT_EQ(choose(flags, cpu, nullptr)->threads_by, ChosenBy::Flag);
  flags.threads = 33;
  EXPECT_FALSE(choose(flags, cpu, nullptr));
}

TEST(ThreadChoice, RefusesThreadsThatOnlyFight) {
  EXPECT_TRUE(check_thread_count(8, 2));
  EXPECT_TRUE(check_thread_count(256, 64));
  EXPECT_FALSE(check_thread_count(9, 2));
  EXPECT_THAT(check_thread_count(256, 2).error().what,
              HasSubstr("--threads: found 256, expected at most 8: there are 2 processors"));
  EXPECT_THAT(check_thread_count(5, 1).error().what, HasSubstr("there is one processor here"));
}

}  // namespace
}  // namespace deltafin::cli
