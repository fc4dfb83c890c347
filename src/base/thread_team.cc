#include "base/thread_team.h"

#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/float_control.h"
#include "base/limits.h"
#include "base/machine.h"

namespace deltafin {

namespace {

using SteadyClock = std::chrono::steady_clock;

// Threads that write the same cache line wait for each other, and processors fetch lines in pairs.
constexpr size_t kLineBytes = 128;

// A pause takes 10 ns on one processor and 50 on another, so between two looks at the clock, which
// takes 25 itself, lies less than a microsecond.
constexpr int kPausesPerLook = 16;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until done() or for `span`, busily: time and not rounds are counted, for a pause takes
// five times as long on one processor as on the next. A thread that lost its processor meanwhile
// finds the time over and does not go on spinning.
template <class Done>
bool spin_until(std::chrono::nanoseconds span, const Done& done) {
  if (done()) return true;
  if (span.count() == 0) return false;
  for (const SteadyClock::time_point end = SteadyClock::now() + span;;) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      pause();
      if (done()) return true;
    }
    if (SteadyClock::now() >= end) return false;
  }
}

}  // namespace

struct ThreadTeam::Shared {
  explicit Shared(std::chrono::nanoseconds time) : spin_time(time) {}

  const std::chrono::nanoseconds spin_time;

  // What waiting helpers look at, written by the leader alone.
  alignas(kLineBytes) std::atomic<uint32_t> region = 0;  // a change: a new region, or the end
  std::atomic<bool> stopping = false;
  TaskFunction function = nullptr;
  void* context = nullptr;
  size_t task_count = 0;

  alignas(kLineBytes) std::atomic<size_t> next_task = 0;

  // The door of the current region: kOpen while helpers may still come in, plus how many are
  // inside. The leader waits for those inside and not for those who are asleep: on a machine that
  // does other work too, a helper may not run for milliseconds, and the leader can do the tasks
  // alone by then.
  static constexpr uint32_t kOpen = uint32_t{1} << 31;
  alignas(kLineBytes) std::atomic<uint32_t> door = 0;

  std::vector<std::thread> helpers;

  bool enter() {
    uint32_t now = door.load(std::memory_order_acquire);
    while ((now & kOpen) != 0)
      if (door.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire))
        return true;
    return false;
  }

  void leave() {
    const uint32_t before = door.fetch_sub(1, std::memory_order_acq_rel);
    if (before == 1) door.notify_one();  // the last one out of a closed region
  }

  void close_and_wait() {
    if (door.fetch_and(~kOpen, std::memory_order_acq_rel) == kOpen) return;  // nobody is inside
    const auto is_empty = [&] { return door.load(std::memory_order_acquire) == 0; };
    if (spin_until(spin_time, is_empty)) return;
    for (uint32_t inside; (inside = door.load(std::memory_order_acquire)) != 0;)
      door.wait(inside, std::memory_order_acquire);
  }

  // The register is looked at on the way out too, so that what a task does to it, or a library that
  // it calls, stops the program before anybody uses a result.
  void take_tasks() {
    CHECK(float_control_is_canonical());
    for (;;) {
      const size_t task = next_task.fetch_add(1, std::memory_order_relaxed);
      if (task >= task_count) break;
      function(context, task);
    }
    CHECK(float_control_is_canonical());
  }

  void take_all_tasks() const {
    CHECK(float_control_is_canonical());
    for (size_t task = 0; task < task_count; ++task) function(context, task);
    CHECK(float_control_is_canonical());
  }

  void help() {
    set_canonical_float_control();
    uint32_t seen = 0;
    for (;;) {
      const auto is_called = [&] { return region.load(std::memory_order_acquire) != seen; };
      if (!spin_until(spin_time, is_called)) region.wait(seen, std::memory_order_acquire);
      seen = region.load(std::memory_order_acquire);
      if (stopping.load(std::memory_order_relaxed)) return;
      if (!enter()) continue;  // too late for this region
      take_tasks();
      leave();
    }
  }
};

ThreadTeam::ThreadTeam(size_t thread_count) : ThreadTeam(thread_count, usable_core_count()) {}

ThreadTeam::ThreadTeam(size_t thread_count, size_t core_count)
    : thread_count_(thread_count),
      shared_(std::make_unique<Shared>(thread_count <= core_count ? kSpinTime
                                                                  : std::chrono::nanoseconds(0))) {
  CHECK(thread_count >= 1 && thread_count <= limits::kThreads);
  set_canonical_float_control();
  for (size_t i = 1; i < thread_count; ++i) {
    try {
      shared_->helpers.emplace_back([shared = shared_.get()] { shared->help(); });
    } catch (const std::system_error&) {
      thread_count_ = i;  // the system starts no more: a smaller team gives the same bits
      break;
    }
  }
}

ThreadTeam::~ThreadTeam() {
  shared_->stopping.store(true, std::memory_order_relaxed);
  shared_->region.fetch_add(1, std::memory_order_release);
  shared_->region.notify_all();
  for (std::thread& helper : shared_->helpers) helper.join();
}

std::chrono::nanoseconds ThreadTeam::spin_time() const { return shared_->spin_time; }

void ThreadTeam::run(size_t task_count, TaskFunction function, void* context) {
  Shared& shared = *shared_;
  shared.function = function;
  shared.context = context;
  shared.task_count = task_count;
  const bool alone = task_count <= 1 || shared.helpers.empty();
  if (alone) {
    shared.take_all_tasks();
    return;
  }
  shared.next_task.store(0, std::memory_order_relaxed);
  shared.door.store(Shared::kOpen, std::memory_order_release);
  shared.region.fetch_add(1, std::memory_order_release);
  shared.region.notify_all();
  shared.take_tasks();
  shared.close_and_wait();
}

}  // namespace deltafin
