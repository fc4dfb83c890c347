#include "base/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/control_groups.h"
#include "base/limits.h"

namespace deltafin {
namespace {

namespace fs = std::filesystem;

// A machine made of files: what it does not say, it does not have.
class FakeMachine : public testing::Test {
 protected:
  FakeMachine() {
    std::string name = (fs::temp_directory_path() / "deltafin-machine-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
  }
  ~FakeMachine() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void write(const std::string& path, const std::string& text) const {
    const fs::path file = root_ + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  // Version 2 alone, as on any distribution of today.
  void use_version_two(const std::string& group) const {
    write("/proc/self/cgroup", "0::" + group + "\n");
    write("/proc/self/mountinfo",
          "23 1 0:5 / /proc rw - proc proc rw\n"
          "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }

  // Version 1; a container sees the tree from `mount_root` on.
  void use_version_one(const std::string& group, const std::string& mount_root) const {
    write("/proc/self/cgroup", "9:name=systemd:/\n4:memory:" + group +
                                   "\n3:cpuset:/other\n2:cpu,cpuacct:" + group + "\n");
    write("/proc/self/mountinfo",
          "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
          "32 31 0:29 " +
              mount_root +
              " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
              "33 31 0:30 " +
              mount_root + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  }

  void siblings(size_t processor, const std::string& list,
                const std::string& name = "thread_siblings_list") const {
    write("/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/" + name, list);
  }

  Machine with_processors(std::vector<size_t> allowed) const { return {root_, std::move(allowed)}; }
  Machine with_processor_count(size_t count) const {
    std::vector<size_t> allowed(count);
    std::iota(allowed.begin(), allowed.end(), size_t{0});
    return with_processors(allowed);
  }
  std::optional<CpuQuota> quota() const { return with_processor_count(16).cpu().quota; }

  std::string root_;
};

// ------------------------------------------------------------------------------------ processors
// ---

using ProcessorsOfAMachine = FakeMachine;

TEST_F(ProcessorsOfAMachine, CountSmtSiblingsOnce) {
  for (size_t i = 0; i < 8; ++i)
    siblings(i, std::to_string(i % 4) + "," + std::to_string(i % 4 + 4) + "\n");
  write("/sys/devices/system/cpu/online", "0-7\n");
  const CpuShare cpu = with_processor_count(8).cpu();
  EXPECT_EQ(cpu.online_count, 8u);
  EXPECT_EQ(cpu.allowed_count, 8u);
  EXPECT_EQ(cpu.core_count, 4u);
  EXPECT_FALSE(cpu.quota);
  EXPECT_EQ(cpu.usable_core_count(), 4u);
}

TEST_F(ProcessorsOfAMachine, CountOnlyThoseInTheAffinityMask) {
  for (size_t i = 0; i < 8; ++i)
    siblings(i, std::to_string(i / 2 * 2) + "-" + std::to_string(i / 2 * 2 + 1) + "\n");
  write("/sys/devices/system/cpu/online", "0-7\n");
  // A whole core, and two halves.
  const CpuShare cpu = with_processors({2, 3, 4, 7}).cpu();
  EXPECT_EQ(cpu.online_count, 8u);
  EXPECT_EQ(cpu.allowed_count, 4u);
  EXPECT_EQ(cpu.usable_core_count(), 3u);
}

TEST_F(ProcessorsOfAMachine, CountEfficientCoresOfAHybridProcessorAsCores) {
  for (const size_t fast : {0u, 1u}) siblings(fast, "0-1\n", "core_cpus_list");
  for (const size_t fast : {2u, 3u}) siblings(fast, "2-3\n", "core_cpus_list");
  for (const size_t slow : {4u, 5u, 6u, 7u})
    siblings(slow, std::to_string(slow) + "\n", "core_cpus_list");
  EXPECT_EQ(with_processor_count(8).cpu().usable_core_count(), 6u);
}

TEST_F(ProcessorsOfAMachine, AreCoresWhereNothingOrNonsenseIsSaidOfSiblings) {
  EXPECT_EQ(with_processor_count(4).cpu().usable_core_count(), 4u);
  siblings(0, "");
  siblings(1, "everyone\n");
  siblings(2, "0-3-7\n");
  siblings(3, "0-1\n");  // and not itself
  EXPECT_EQ(with_processor_count(4).cpu().usable_core_count(), 4u);
}

TEST_F(ProcessorsOfAMachine, AreOneAtLeastAndTheLimitAtMost) {
  EXPECT_EQ(with_processors({}).cpu().usable_core_count(), 1u);
  EXPECT_EQ(with_processor_count(1000).cpu().core_count, 1000u);
  EXPECT_EQ(with_processor_count(1000).cpu().usable_core_count(), limits::kThreads);
}

TEST(ProcessorList, IsReadAsTheKernelWritesIt) {
  using List = std::vector<size_t>;
  EXPECT_EQ(parse_processor_list("0\n"), List({0}));
  EXPECT_EQ(parse_processor_list("0-3,8,10-11\n"), List({0, 1, 2, 3, 8, 10, 11}));
  for (const char* bad : {"", "\n", "x", "1-", "-1", "3-1", "1,x", "0-999999999999", "1 2"})
    EXPECT_EQ(parse_processor_list(bad), List()) << bad;
}

// ----------------------------------------------------------------------------------------- quota
// ---

using QuotaOfAMachine = FakeMachine;

TEST_F(QuotaOfAMachine, OfVersionTwoBoundsTheCores) {
  use_version_two("/system.slice/job");
  write("/sys/fs/cgroup/system.slice/job/cpu.max", "350000 100000\n");
  const CpuShare cpu = with_processor_count(16).cpu();
  ASSERT_TRUE(cpu.quota);
  EXPECT_DOUBLE_EQ(cpu.quota->processors, 3.5);
  EXPECT_EQ(cpu.quota->file, "/sys/fs/cgroup/system.slice/job/cpu.max");
  EXPECT_EQ(cpu.usable_core_count(), 3u);
  EXPECT_EQ(with_processor_count(2).cpu().usable_core_count(), 2u);
}

TEST_F(QuotaOfAMachine, OfAParentMayBeTheTighter) {
  use_version_two("/pod/container/worker");
  write("/sys/fs/cgroup/pod/container/worker/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/pod/container/cpu.max", "800000 100000\n");
  write("/sys/fs/cgroup/pod/cpu.max", "100000 50000\n");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->processors, 2.0);
  EXPECT_EQ(quota()->file, "/sys/fs/cgroup/pod/cpu.max");
  write("/sys/fs/cgroup/pod/container/worker/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota()->file, "/sys/fs/cgroup/pod/container/worker/cpu.max");
}

TEST_F(QuotaOfAMachine, OfOtherGroupsIsNotOurs) {
  use_version_two("/pod/a");
  write("/sys/fs/cgroup/pod/b/cpu.max", "100000 100000\n");
  write("/sys/fs/cgroup/pod/a/below/cpu.max", "100000 100000\n");
  EXPECT_FALSE(quota());
}

TEST_F(QuotaOfAMachine, OfTheTopOfAContainerCounts) {
  use_version_two("/");
  write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->processors, 2.0);
  // A process that was moved in from outside; what lies beside the mount is no group.
  use_version_two("/../elsewhere");
  write("/sys/fs/elsewhere/cpu.max", "100000 100000\n");
  ASSERT_TRUE(quota());
  EXPECT_EQ(quota()->file, "/sys/fs/cgroup/cpu.max");
}

TEST_F(QuotaOfAMachine, OfVersionOneBoundsTheCores) {
  use_version_one("/user/job", "/");
  const std::string folder = "/sys/fs/cgroup/cpu,cpuacct/user";
  write(folder + "/job/cpu.cfs_quota_us", "-1\n");
  write(folder + "/job/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(quota());
  write(folder + "/cpu.cfs_quota_us", "250000\n");
  write(folder + "/cpu.cfs_period_us", "100000\n");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->processors, 2.5);
  EXPECT_EQ(quota()->file, folder + "/cpu.cfs_quota_us");
}

TEST_F(QuotaOfAMachine, OfVersionOneIsFoundWhereAContainerMountsOnlyItsOwnGroup) {
  use_version_one("/docker/0123", "/docker/0123");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->processors, 0.5);
  EXPECT_EQ(with_processor_count(8).cpu().usable_core_count(), 1u);  // never none
  // A group inside the container, and then a mount of somebody else's group.
  use_version_one("/docker/0123/worker", "/docker/0123");
  write("/sys/fs/cgroup/cpu,cpuacct/worker/cpu.cfs_quota_us", "40000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/worker/cpu.cfs_period_us", "100000\n");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->processors, 0.4);
  use_version_one("/docker/0123/worker", "/docker/01");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->processors, 0.5);
}

TEST_F(QuotaOfAMachine, IsTheTighterOfBothVersions) {
  use_version_one("/job", "/");
  const auto append = [&](const std::string& path, const std::string& text) {
    std::ofstream(root_ + path, std::ios::app) << text;
  };
  append("/proc/self/cgroup", "0::/unified job\n");
  append("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/my\\040groups rw - cgroup2 cgroup2 rw\n");
  write("/sys/fs/my groups/unified job/cpu.max", "300000 100000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->processors, 3.0);
}

TEST_F(QuotaOfAMachine, ThatMakesNoSenseIsNone) {
  use_version_two("/job");
  for (const char* text :
       {"", "\n", "max", "max 100000", "many 100000", "100000", "100000 0", "0 0", "-1 100000",
        "inf 100000", "nan 1", "100000 100000 7", "1e5x 100000"}) {
    write("/sys/fs/cgroup/job/cpu.max", text);
    EXPECT_FALSE(quota()) << text;
  }
}

TEST_F(QuotaOfAMachine, IsNoneWhereProcIsMissingOrDamaged) {
  write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_FALSE(quota());
  write("/proc/self/cgroup", "0::/\n");
  EXPECT_FALSE(quota());
  for (const char* text : {"\n\n", "-", "a b c d e f -", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2",
                           "- - - - - - - -", "1 2 3 4 5 6 - cgroup x cpu"}) {
    write("/proc/self/mountinfo", text);
    EXPECT_FALSE(quota()) << text;
  }
  use_version_two("/");
  for (const char* text : {"", ":", "::", "0:", "0::", "zero"}) {
    write("/proc/self/cgroup", text);
    EXPECT_FALSE(quota()) << text;
  }
}

// ---------------------------------------------------------------------------------------- memory
// ---

class MemoryOfAMachine : public FakeMachine {
 protected:
  MemoryOfAMachine() {
    write("/proc/meminfo",
          "MemTotal:       16000 kB\nMemFree:  10 kB\nMemAvailable:   12000 kB\nBuffers: 1 kB\n");
  }
  MemoryShare memory() const { return with_processor_count(1).memory(); }
  static constexpr uint64_t kKib = 1024;
};

TEST_F(MemoryOfAMachine, IsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(memory().total_bytes, 16000 * kKib);
  EXPECT_EQ(memory().available_bytes, 12000 * kKib);
  EXPECT_FALSE(memory().limit);
  EXPECT_EQ(memory().usable_bytes(), 12000 * kKib);
}

TEST_F(MemoryOfAMachine, SaysHowMuchWeEverHadInUse) {
  EXPECT_FALSE(with_processor_count(1).peak_resident_bytes());
  write("/proc/self/status", "Name:\tdeltafin\nVmRSS:\t 10 kB\nVmHWM:\t  28696 kB\n");
  EXPECT_EQ(with_processor_count(1).resident_bytes(), 10 * kKib);
  EXPECT_EQ(with_processor_count(1).peak_resident_bytes(), 28696 * kKib);
  EXPECT_GT(Machine().peak_resident_bytes(), 1000 * kKib);
}

TEST_F(MemoryOfAMachine, IsUnknownWhereTheKernelDoesNotSay) {
  for (const char* text :
       {"", "MemTotal: 9 kB\n", "MemAvailable: much kB\n", "MemAvailable:", "MemAvailable: 12\n",
        "MemAvailable: 99999999999999999999 kB\n", "MemAvailable: 18014398509481985 kB\n"}) {
    write("/proc/meminfo", text);
    EXPECT_FALSE(memory().usable_bytes()) << text;
  }
}

TEST_F(MemoryOfAMachine, EndsAtTheLimitOfTheGroupWithoutPagesThatCanBeDropped) {
  use_version_two("/job");
  write("/sys/fs/cgroup/job/memory.max", std::to_string(8000 * kKib) + "\n");
  write("/sys/fs/cgroup/job/memory.current", std::to_string(7000 * kKib) + "\n");
  EXPECT_EQ(memory().usable_bytes(), 1000 * kKib);
  write("/sys/fs/cgroup/job/memory.stat", "anon 1\nfile 2\ninactive_file " +
                                              std::to_string(3000 * kKib) + "\nactive_file " +
                                              std::to_string(2000 * kKib) + "\ninactive_anon 7\n");
  EXPECT_EQ(memory().usable_bytes(), 6000 * kKib);
  ASSERT_TRUE(memory().limit);
  EXPECT_EQ(memory().limit->bytes, 8000 * kKib);
  EXPECT_EQ(memory().limit->used_bytes, 2000 * kKib);
  EXPECT_EQ(memory().limit->file, "/sys/fs/cgroup/job/memory.max");
}

TEST_F(MemoryOfAMachine, EndsAtTheGroupWithTheLeastLeftAndNotWithTheLowestLimit) {
  use_version_two("/pod/job");
  write("/sys/fs/cgroup/pod/job/memory.max", std::to_string(3000 * kKib));
  write("/sys/fs/cgroup/pod/job/memory.current", std::to_string(1000 * kKib));
  write("/sys/fs/cgroup/pod/memory.max", std::to_string(5000 * kKib));
  write("/sys/fs/cgroup/pod/memory.current", std::to_string(4500 * kKib));
  EXPECT_EQ(memory().usable_bytes(), 500 * kKib);
  write("/sys/fs/cgroup/pod/job/memory.high", std::to_string(1200 * kKib));
  EXPECT_EQ(memory().usable_bytes(), 200 * kKib);
  write("/sys/fs/cgroup/pod/job/memory.high", std::to_string(900 * kKib));  // already above it
  EXPECT_EQ(memory().usable_bytes(), 0u);
}

TEST_F(MemoryOfAMachine, EndsAtALimitOfVersionOne) {
  use_version_one("/job", "/");
  const std::string folder = "/sys/fs/cgroup/memory/job";
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write(folder + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(memory().limit);
  write(folder + "/memory.limit_in_bytes", std::to_string(4000 * kKib));
  write(folder + "/memory.usage_in_bytes", std::to_string(3000 * kKib));
  write(folder + "/memory.stat", "inactive_file 5\ntotal_inactive_file 1048576\n");
  EXPECT_EQ(memory().usable_bytes(), 2024 * kKib);
}

TEST_F(MemoryOfAMachine, IsWhatTheMachineHasWhenTheGroupMayHaveMore) {
  use_version_two("/job");
  for (const char* limit : {"max\n", "99999999999999\n", "lots\n", ""}) {
    write("/sys/fs/cgroup/job/memory.max", limit);
    EXPECT_FALSE(memory().limit) << limit;
  }
  write("/sys/fs/cgroup/job/memory.max", std::to_string(15000 * kKib));
  EXPECT_TRUE(memory().limit);
  EXPECT_EQ(memory().usable_bytes(), 12000 * kKib);
}

// ------------------------------------------------------------------------------------- the rest
// ---

TEST_F(FakeMachine, SaysWhetherThereAreHugePages) {
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  EXPECT_EQ(with_processor_count(1).huge_pages(), HugePages::Unknown);
  const auto state_of = [&](const char* text) {
    write(path, text);
    return with_processor_count(1).huge_pages();
  };
  EXPECT_EQ(state_of("[always] madvise never\n"), HugePages::Always);
  EXPECT_EQ(state_of("always [madvise] never\n"), HugePages::Advised);
  EXPECT_EQ(state_of("always madvise [never]\n"), HugePages::Never);
  EXPECT_EQ(state_of("always madvise never\n"), HugePages::Unknown);
}

TEST_F(FakeMachine, NamesTheProcessor) {
  EXPECT_EQ(with_processor_count(1).processor_name(), "");
  write("/proc/cpuinfo",
        "processor\t: 0\nmodel\t\t: 106\nmodel name\t: Some CPU @ 2:80 GHz\nx : y\n");
  EXPECT_EQ(with_processor_count(1).processor_name(), "Some CPU @ 2:80 GHz");
}

TEST(UsableCoreCount, IsAtLeastOneAndAtMostTheProcessorsOfThisMachine) {
  EXPECT_GE(usable_core_count(), 1u);
  EXPECT_LE(usable_core_count(), std::max(1u, std::thread::hardware_concurrency()));
}

TEST(ThisMachine, HasMemoryAndProcessors) {
  const Machine machine;
  EXPECT_GT(machine.memory().usable_bytes().value_or(0), 0u);
  EXPECT_GE(machine.cpu().online_count, machine.cpu().core_count);
}

}  // namespace
}  // namespace deltafin
