#include "memory/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace deltafin::memory {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uint64_t kGib = 1ull << 30;

MemoryShare machine_with(uint64_t available_bytes) {
  return {.total_bytes = 2 * available_bytes, .available_bytes = available_bytes, .limit = {}};
}

TEST(Headroom, IsASixteenthBetween64MebibytesAnd4Gibibytes) {
  EXPECT_EQ(headroom_bytes(16 * kGib), kGib);
  EXPECT_EQ(headroom_bytes(512 * kGib), 4 * kGib);
  EXPECT_EQ(headroom_bytes(kGib / 2), 64ull << 20);
  EXPECT_EQ(headroom_bytes(1000), 1000u);
  uint64_t before = 0;
  for (uint64_t usable = 0; usable < 100 * kGib; usable += 12'345'678) {
    ASSERT_GE(usable - headroom_bytes(usable), before);
    before = usable - headroom_bytes(usable);
  }
}

TEST(Budget, IsWhatSomebodySays) {
  const Budget budget = find_budget(uint64_t{5 * kGib}, machine_with(16 * kGib)).value();
  EXPECT_EQ(budget.bytes, 5 * kGib);
  EXPECT_FALSE(budget.exceeds_machine);
  EXPECT_TRUE(find_budget(uint64_t{17 * kGib}, machine_with(16 * kGib))->exceeds_machine);
  EXPECT_FALSE(find_budget(uint64_t{17 * kGib}, MemoryShare{})->exceeds_machine);
}

TEST(Budget, IsAPartOfWhatIsUsable) {
  const Budget budget = find_budget(ShareOfUsable{0.8}, machine_with(10'000'000'000)).value();
  EXPECT_EQ(budget.bytes, 8'000'000'000u);
  EXPECT_EQ(budget.reason, "80 % of 10.00 GB available");
}

TEST(Budget, NeedsAMachineThatSaysWhatThereIs) {
  for (const BudgetRule& rule : {BudgetRule(AutoBudget{}), BudgetRule(ShareOfUsable{0.5})}) {
    const Result<Budget> budget = find_budget(rule, MemoryShare{});
    ASSERT_FALSE(budget);
    EXPECT_EQ(budget.error().code, ErrorCode::OverBudget);
    EXPECT_THAT(budget.error().what, HasSubstr("give --memory SIZE"));
  }
}

// A machine of 32 GiB, of which 24 are available, as files under a root.
class BudgetOfAFakeMachine : public testing::Test {
 protected:
  BudgetOfAFakeMachine() {
    std::string name = (fs::temp_directory_path() / "deltafin-budget-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
    write("/proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 25165824 kB\n");
  }
  ~BudgetOfAFakeMachine() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  Budget automatic() const {
    return find_budget(AutoBudget{}, Machine(root_, {0}).memory()).value();
  }

  std::string root_;
};

TEST_F(BudgetOfAFakeMachine, IsTheAvailableMemoryWithoutHeadroom) {
  EXPECT_EQ(automatic().bytes, 24 * kGib - 24 * kGib / 16);
  EXPECT_THAT(automatic().reason, HasSubstr("available, less 1.61 GB headroom"));
}

TEST_F(BudgetOfAFakeMachine, EndsAtTheTightestGroupOfVersionTwoAboveOurs) {
  write("/proc/self/cgroup", "0::/pod/job\n");
  write("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  const std::string pod = "/sys/fs/cgroup/pod";
  write(pod + "/memory.max", std::to_string(10 * kGib));
  write(pod + "/memory.current", std::to_string(9 * kGib));
  // Seven of these nine are pages of files that nobody has used for a while.
  write(pod + "/memory.stat", "inactive_file " + std::to_string(7 * kGib) + "\nactive_file 0\n");
  write(pod + "/job/memory.max", "max\n");
  EXPECT_EQ(automatic().bytes, 8 * kGib - kGib / 2);
  EXPECT_THAT(automatic().reason, HasSubstr("left below /sys/fs/cgroup/pod/memory.max"));
}

TEST_F(BudgetOfAFakeMachine, EndsAtTheTightestGroupOfVersionOneAboveOurs) {
  write("/proc/self/cgroup", "4:memory:/pod/job\n");
  write("/proc/self/mountinfo",
        "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  const std::string pod = "/sys/fs/cgroup/memory/pod";
  write(pod + "/memory.limit_in_bytes", std::to_string(4 * kGib));
  write(pod + "/memory.usage_in_bytes", std::to_string(3 * kGib));
  write(pod + "/memory.stat",
        "inactive_file 1\ntotal_inactive_file " + std::to_string(kGib) + "\n");
  write(pod + "/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(automatic().bytes, 2 * kGib - kGib / 8);
}

}  // namespace
}  // namespace deltafin::memory
