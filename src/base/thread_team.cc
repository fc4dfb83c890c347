#include "base/thread_team.h"

#include <cstdint>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/float_control.h"
#include "base/limits.h"

namespace deltafin {

namespace {

// A helper looks for the next region this many times before it sleeps. A pause takes 40 to 140
// cycles, so this is 5 to 15 microseconds, the gap between two regions of one layer. Longer
// spinning takes the core from the reader threads.
constexpr int kSpinCount = 300;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

struct ThreadTeam::Shared {
  std::atomic<uint32_t> region = 0;  // counts up: a change means a new region, or the end
  std::atomic<bool> stopping = false;
  TaskFunction function = nullptr;
  void* context = nullptr;
  size_t task_count = 0;
  std::atomic<size_t> next_task = 0;
  // The door of the current region: kOpen while helpers may still come in, plus how many are
  // inside. The leader waits for those inside and not for those who are asleep: on a machine that
  // does other work too, a helper may not run for milliseconds, and the leader can do the tasks
  // alone by then.
  static constexpr uint32_t kOpen = uint32_t{1} << 31;
  std::atomic<uint32_t> door = 0;
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
    door.fetch_and(~kOpen, std::memory_order_acq_rel);
    for (int spin = 0; spin < kSpinCount; ++spin) {
      if (door.load(std::memory_order_acquire) == 0) return;
      pause();
    }
    for (uint32_t inside; (inside = door.load(std::memory_order_acquire)) != 0;)
      door.wait(inside, std::memory_order_acquire);
  }

  void take_tasks() {
    CHECK(float_control_is_canonical());
    for (;;) {
      const size_t task = next_task.fetch_add(1, std::memory_order_relaxed);
      if (task >= task_count) return;
      function(context, task);
    }
  }

  void help() {
    set_canonical_float_control();
    uint32_t seen = 0;
    for (;;) {
      for (int spin = 0; spin < kSpinCount && region.load(std::memory_order_acquire) == seen;
           ++spin)
        pause();
      region.wait(seen, std::memory_order_acquire);
      seen = region.load(std::memory_order_acquire);
      if (stopping.load(std::memory_order_relaxed)) return;
      if (!enter()) continue;  // too late for this region
      take_tasks();
      leave();
    }
  }
};

ThreadTeam::ThreadTeam(size_t thread_count)
    : thread_count_(thread_count), shared_(std::make_unique<Shared>()) {
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

void ThreadTeam::run(size_t task_count, TaskFunction function, void* context) {
  Shared& shared = *shared_;
  shared.function = function;
  shared.context = context;
  shared.task_count = task_count;
  shared.next_task.store(0, std::memory_order_relaxed);
  const bool alone = task_count <= 1 || shared.helpers.empty();
  if (alone) {
    shared.take_tasks();
    return;
  }
  shared.door.store(Shared::kOpen, std::memory_order_release);
  shared.region.fetch_add(1, std::memory_order_release);
  shared.region.notify_all();
  shared.take_tasks();
  shared.close_and_wait();
}

}  // namespace deltafin
