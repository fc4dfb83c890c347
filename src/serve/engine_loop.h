// The thread that owns the engine: takes requests from other threads, runs the scheduler, and says
// how it goes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "engine/scheduler.h"

namespace deltafin::serve {

enum class ServerState : uint8_t { Loading, Ready, Degraded, Draining };
const char* name_of(ServerState state);

enum class Activity : uint8_t { Idle, Prefill, Decode };
const char* name_of(Activity activity);

// A look at the engine from outside; at most a fraction of a second old while it works.
struct EngineStatus {
  ServerState state = ServerState::Loading;
  double loading_fraction = 0;
  Activity activity = Activity::Idle;
  engine::PassPosition position;
  engine::EngineCounters engine;
  engine::SchedulerCounters scheduler;
  uint64_t failed_requests = 0;
  std::string last_failure;  // why; empty: there was none since the last success
};

// A request that was handed over; serves to cancel it.
using Ticket = uint64_t;

class EngineLoop {
 public:
  explicit EngineLoop(const Clock& clock) : clock_(clock) {}

  // --- From any thread.

  // The listener is called on the engine's thread. What the scheduler refuses, it hears as
  // on_end().
  Ticket submit(engine::ScheduledRequest request,
                std::shared_ptr<engine::RequestListener> listener);
  void cancel(Ticket ticket);
  EngineStatus status() const;
  // No request that comes now will be served.
  void drain();
  // Nor will those that are there: they are cancelled.
  void stop();
  void note_loading(double fraction);

  // --- On the engine's thread.

  // Serves until drain() or stop() was called and nothing is left to do.
  void run(engine::Engine& engine, const engine::SchedulerOptions& options);

 private:
  class Watcher;
  struct Arrival {
    Ticket ticket = 0;
    engine::ScheduledRequest request;
    std::shared_ptr<engine::RequestListener> listener;
  };

  void take_arrivals(engine::Scheduler& scheduler);
  void publish(const engine::Engine& engine, const engine::Scheduler& scheduler);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Arrival> arrivals_;
  Ticket arriving_ = 0;            // on its way into the scheduler
  std::vector<Ticket> cancelled_;  // before they were there
  std::unordered_map<Ticket, engine::RequestId> running_;
  const engine::Engine* engine_ = nullptr;  // these two while it runs
  engine::Scheduler* scheduler_ = nullptr;
  Ticket next_ticket_ = 1;
  bool draining_ = false, stopping_ = false;
  EngineStatus status_;
  std::chrono::nanoseconds published_{0};
};

}  // namespace deltafin::serve
