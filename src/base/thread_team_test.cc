#include "base/thread_team.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "base/float_control.h"
#include "base/machine.h"

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
// What a library built with fast-math does when it is loaded.
void flush_to_zero() { _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON); }

TEST(ThreadTeamDeathTest, AFlippedControlRegisterStopsTheNextRegion) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        ThreadTeam team(2);
        flush_to_zero();
        team.parallel_for(4, [](size_t) {});
      },
      "float_control_is_canonical");
}

TEST(ThreadTeamDeathTest, ATaskThatFlipsTheControlRegisterIsNoticedBeforeItsRegionEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const size_t size : {1u, 2u}) {
    EXPECT_DEATH(
        {
          ThreadTeam team(size);
          team.parallel_for(1, [](size_t) { flush_to_zero(); });
        },
        "float_control_is_canonical");
  }
}

TEST(ThreadTeamDeathTest, AHelperThatFlipsItsControlRegisterIsNoticedBeforeItsRegionEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        ThreadTeam team(2);
        const std::thread::id leader = std::this_thread::get_id();
        std::atomic<int> arrived = 0;
        team.parallel_for(2, [&](size_t) {
          ++arrived;
          while (arrived < 2) std::this_thread::yield();  // so that the helper has one of them
          if (std::this_thread::get_id() != leader) flush_to_zero();
        });
      },
      "float_control_is_canonical");
}
#endif

// --- other threads want to run too
// ------------------------------------------------------------------

TEST(ThreadTeam, SpinsOnlyWhenEveryThreadHasACore) {
  EXPECT_EQ(ThreadTeam(2, 2).spin_time(), ThreadTeam::kSpinTime);
  EXPECT_EQ(ThreadTeam(2, 3).spin_time(), ThreadTeam::kSpinTime);
  EXPECT_EQ(ThreadTeam(2, 1).spin_time().count(), 0);
  EXPECT_EQ(ThreadTeam(1).spin_time(), ThreadTeam::kSpinTime);
  EXPECT_EQ(ThreadTeam(usable_core_count() + 1).spin_time().count(), 0);
}

TEST(ThreadTeam, WorksWithoutSpinning) {
  ThreadTeam team(4, 1);
  for (size_t region = 0; region < 2000; ++region) {
    std::vector<int> runs(region % 7);
    team.parallel_for(runs.size(), [&](size_t task) { ++runs[task]; });
    ASSERT_EQ(runs, std::vector<int>(runs.size(), 1));
  }
}

std::chrono::nanoseconds processor_time(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Reads a file all the time, as the thread that fetches experts does.
class Reader {
 public:
  Reader() : thread_([this] { read(); }) {}
  ~Reader() {
    stopping_ = true;
    thread_.join();
  }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  // Processor time that it has used.
  std::chrono::nanoseconds time() {
    clockid_t clock{};
    EXPECT_EQ(::pthread_getcpuclockid(thread_.native_handle(), &clock), 0);
    return processor_time(clock);
  }

 private:
  void read() {
    const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    std::array<char, 4096> page{};
    while (!stopping_.load(std::memory_order_relaxed)) {
      EXPECT_EQ(::pread(file, page.data(), page.size(), 0), ssize_t(page.size()));
      count_.fetch_add(1, std::memory_order_relaxed);
    }
    ::close(file);
  }

  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> count_ = 0;
  std::thread thread_;
};

TEST(ThreadTeam, LetsAReaderGetOnWhileRegionsRunBackToBack) {
  constexpr uint64_t kReads = 1000, kRegionsMost = 5'000'000;
  ThreadTeam team(std::max<size_t>(2, usable_core_count()));
  Reader reader;
  std::vector<uint64_t> sums(8);
  uint64_t regions = 0;
  for (; reader.count() < kReads && regions < kRegionsMost; ++regions)
    team.parallel_for(sums.size(), [&](size_t task) {
      for (uint64_t i = 0; i < 500; ++i) sums[task] = sums[task] * 31 + i;
    });
  EXPECT_GE(reader.count(), kReads) << "in " << regions << " regions";
}

// Decoding from disk: the leader waits for the reader again and again, and a helper that spins
// meanwhile takes a core that the reader could have. Processor time is compared and not time, so
// that it does not matter what else the machine does.
TEST(ThreadTeam, LeavesTheProcessorsToTheReaderWhileTheLeaderWaitsForIt) {
  constexpr uint64_t kReadsForARegion = 2000;  // about a millisecond
  ThreadTeam team(2, 2);
  Reader reader;
  const auto helper_time = [&] {
    return processor_time(CLOCK_PROCESS_CPUTIME_ID) - processor_time(CLOCK_THREAD_CPUTIME_ID) -
           reader.time();
  };
  const std::chrono::nanoseconds helper_start = helper_time(), reader_start = reader.time();
  for (int region = 0; region < 100; ++region) {
    const uint64_t enough = reader.count() + kReadsForARegion;
    while (reader.count() < enough) std::this_thread::sleep_for(std::chrono::microseconds(100));
    team.parallel_for(8, [](size_t) {});
  }
  EXPECT_LT(helper_time() - helper_start, (reader.time() - reader_start) / 4);
}

}  // namespace
}  // namespace deltafin
