// The compute team: the engine thread and its helpers run one region of independent tasks at a
// time.
//
// Tasks split outputs (rows, heads, experts), never the inside of a sum, so neither the number of
// threads nor which thread takes which task can reach the bits of a result.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace deltafin {

class ThreadTeam {
 public:
  // A thread with nothing to do looks this long for work before it sleeps. Of the gaps between two
  // regions in decoding 95 % are below 16 us, and the longest are reads, when a thread that spins
  // takes the core from those that read (docs/ledger.md, L-0003). To wake a sleeper costs the
  // leader 7 to 10 us.
  static constexpr std::chrono::nanoseconds kSpinTime{20'000};

  // `thread_count` includes the calling thread, so 1 starts no helper. 1 <= thread_count <= 256.
  // Where the system refuses to start that many threads, the team is smaller. A team of more
  // threads than usable cores (base/machine.h, asked now) never spins: the one that is waited for
  // needs the core.
  explicit ThreadTeam(size_t thread_count);
  // The same for that many usable cores.
  ThreadTeam(size_t thread_count, size_t core_count);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  size_t size() const { return thread_count_; }
  // kSpinTime, or 0.
  std::chrono::nanoseconds spin_time() const;

  // Calls body(task) once for every task in [0, task_count), on any thread of the team, and returns
  // when all are done. Only the thread that made the team may call; regions do not nest. `body`
  // must not throw. Every thread CHECKs its floating-point control register when it enters
  // and when it leaves.
  template <class Body>
  void parallel_for(size_t task_count, Body&& body) {
    using Callable = std::remove_reference_t<Body>;
    run(
        task_count, [](void* context, size_t task) { (*static_cast<Callable*>(context))(task); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using TaskFunction = void (*)(void* context, size_t task);
  struct Shared;

  void run(size_t task_count, TaskFunction function, void* context);

  size_t thread_count_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace deltafin
