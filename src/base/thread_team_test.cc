#include "base/thread_team.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "base/float_control.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace deltafin {
namespace {

class ThreadTeamOfSize : public testing::TestWithParam<size_t> {};

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadTeamOfSize, testing::Values(1, 2, 3, 8));

TEST_P(ThreadTeamOfSize, RunsEveryTaskExactlyOnceForAnyTaskCount) {
  ThreadTeam team(GetParam());
  EXPECT_EQ(team.size(), GetParam());
  for (size_t task_count = 0; task_count <= 1000; ++task_count) {
    std::vector<int> runs(task_count);  // not atomic: two runs of one task are a race for TSan
    team.parallel_for(task_count, [&](size_t task) { ++runs[task]; });
    ASSERT_EQ(runs, std::vector<int>(task_count, 1)) << task_count;
  }
}

TEST_P(ThreadTeamOfSize, EveryRegionSeesWhatTheLastOneWrote) {
  ThreadTeam team(GetParam());
  std::vector<uint64_t> from(64), to(64);
  std::iota(from.begin(), from.end(), 0u);
  for (int region = 0; region < 3000; ++region) {
    team.parallel_for(from.size(), [&](size_t i) { to[i] = from[(i + 1) % from.size()] + 1; });
    std::swap(from, to);
  }
  for (size_t i = 0; i < from.size(); ++i) EXPECT_EQ(from[i], (i + 3000) % 64 + 3000) << i;
}

TEST_P(ThreadTeamOfSize, WakesHelpersThatHaveFallenAsleep) {
  ThreadTeam team(GetParam());
  for (int region = 0; region < 20; ++region) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // far beyond the spinning
    std::vector<int> runs(100);
    team.parallel_for(runs.size(), [&](size_t task) { ++runs[task]; });
    ASSERT_EQ(runs, std::vector<int>(100, 1));
  }
}

TEST(ThreadTeam, MayBeMadeAndDroppedWithoutEverWorking) {
  for (size_t i = 0; i < 50; ++i) ThreadTeam team(1 + i % 8);
}

TEST(ThreadTeam, UsesAllItsThreads) {
  ThreadTeam team(3);
  std::atomic<int> arrived = 0;
  // Three tasks that wait for each other: fewer than three threads would never finish.
  team.parallel_for(3, [&](size_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST(ThreadTeam, ASingleTaskRunsOnTheCaller) {
  ThreadTeam team(4);
  std::thread::id where;
  team.parallel_for(1, [&](size_t) { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(ThreadTeam, RunsConstBodiesToo) {
  ThreadTeam team(2);
  std::atomic<size_t> sum = 0;
  const auto body = [&](size_t task) { sum += task; };
  team.parallel_for(10, body);
  EXPECT_EQ(sum, 45u);
}

TEST(ThreadTeam, EveryThreadKeepsSubnormals) {
  ThreadTeam team(3);
  std::atomic<int> arrived = 0, canonical = 0;
  team.parallel_for(3, [&](size_t) {
    if (float_control_is_canonical()) ++canonical;
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(canonical, 3);
}

TEST(ThreadTeamDeathTest, ASizeOfZeroIsABug) {
  EXPECT_DEATH(ThreadTeam(0), "thread_count >= 1");
  EXPECT_DEATH(ThreadTeam(257), "thread_count <= limits::kThreads");
}

#if defined(__x86_64__)
TEST(ThreadTeamDeathTest, AFlippedControlRegisterStopsTheNextRegion) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        ThreadTeam team(2);
        _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON);
        team.parallel_for(4, [](size_t) {});
      },
      "float_control_is_canonical");
}
#endif

}  // namespace
}  // namespace deltafin
