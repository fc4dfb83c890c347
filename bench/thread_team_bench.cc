// What a region costs beside its work. A token runs through about a thousand regions, so a
// microsecond more in each is a millisecond a token.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/machine.h"
#include "base/thread_team.h"

namespace deltafin {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Arithmetic that stays in registers and takes time in proportion to `rounds`. Never inlined, so
// that it is the same code when it is measured and when it is used.
[[gnu::noinline]] uint64_t work(uint64_t rounds) {
  uint64_t value = rounds;
  for (uint64_t i = 0; i < rounds; ++i) {
    value = value * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(value));
  }
  return value;
}

// Rounds of work() in 1.6 us: what a block of rows of one small expert takes. The fastest of many
// tries, so that other work of the machine does not count.
uint64_t rounds_of_a_chunk() {
  static const uint64_t rounds = [] {
    constexpr uint64_t kRounds = 10'000;
    double best = 1;
    for (int i = 0; i < 200; ++i) {
      const Clock::time_point start = Clock::now();
      benchmark::DoNotOptimize(work(kRounds));
      best = std::min(best, seconds_since(start));
    }
    return uint64_t(double(kRounds) * 1.6e-6 / best);
  }();
  return rounds;
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("threads");
  benchmark->Arg(1)->Arg(2);
  if (usable_core_count() > 2) benchmark->Arg(int64_t(usable_core_count()));
}

// One task for each thread, with nothing in it.
void empty_region(benchmark::State& state) {
  ThreadTeam team{size_t(state.range(0))};
  for (auto _ : state) team.parallel_for(team.size(), [](size_t) {});
}

// A region of which every thread must have a part, as if each had the same work: the time until the
// helpers are there, and back. `idle`: time in which the leader computes alone before, in
// microseconds.
void meeting(benchmark::State& state) {
  ThreadTeam team{size_t(state.range(0))};
  const auto idle = std::chrono::microseconds(state.range(1));
  for (auto _ : state) {
    for (const Clock::time_point end = Clock::now() + idle; Clock::now() < end;) {
    }
    std::atomic<size_t> missing = team.size();
    const Clock::time_point start = Clock::now();
    team.parallel_for(team.size(), [&](size_t) {
      missing.fetch_sub(1);
      while (missing.load() > 0) {
      }
    });
    state.SetIterationTime(seconds_since(start));
  }
}

// The same eight chunks of 1.6 us each, without a team (threads 0) and with one, after the leader
// has computed alone for `idle` microseconds.
void chunks(benchmark::State& state) {
  constexpr size_t kChunks = 8;
  const uint64_t rounds = rounds_of_a_chunk();
  const size_t size = size_t(state.range(0));
  const auto idle = std::chrono::microseconds(state.range(1));
  ThreadTeam team(std::max<size_t>(size, 1));
  const auto chunk = [&](size_t) { benchmark::DoNotOptimize(work(rounds)); };
  for (auto _ : state) {
    for (const Clock::time_point end = Clock::now() + idle; Clock::now() < end;) {
    }
    const Clock::time_point start = Clock::now();
    if (size == 0) {
      for (size_t i = 0; i < kChunks; ++i) chunk(i);
    } else {
      team.parallel_for(kChunks, chunk);
    }
    state.SetIterationTime(seconds_since(start));
  }
}

BENCHMARK(empty_region)->Apply(sizes)->UseRealTime();
BENCHMARK(meeting)
    ->ArgNames({"threads", "idle"})
    ->ArgsProduct({{2}, {0, 5, 15, 50, 1000}})
    ->UseManualTime();
BENCHMARK(chunks)
    ->ArgNames({"threads", "idle"})
    ->ArgsProduct({{0, 1, 2}, {0, 10, 50}})
    ->UseManualTime();

}  // namespace
}  // namespace deltafin
