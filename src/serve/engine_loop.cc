#include "serve/engine_loop.h"

#include <algorithm>
#include <thread>

namespace deltafin::serve {

namespace {

constexpr std::chrono::milliseconds kIdleWait{200};
constexpr std::chrono::milliseconds kGather{5};
constexpr std::chrono::milliseconds kPublishInterval{100};

}  // namespace

const char* name_of(ServerState state) {
  switch (state) {
    case ServerState::Loading:
      return "loading";
    case ServerState::Ready:
      return "ready";
    case ServerState::Degraded:
      return "degraded";
    case ServerState::Draining:
      return "draining";
  }
  return "";
}

const char* name_of(Activity activity) {
  switch (activity) {
    case Activity::Idle:
      return "idle";
    case Activity::Prefill:
      return "prefill";
    case Activity::Decode:
      return "decode";
  }
  return "";
}

// Hands everything on, and sees what the engine is doing and how requests end.
class EngineLoop::Watcher final : public engine::RequestListener {
 public:
  Watcher(EngineLoop& loop, Ticket ticket, std::shared_ptr<engine::RequestListener> listener)
      : loop_(loop), ticket_(ticket), listener_(std::move(listener)) {}

  void on_start(uint64_t cached) override { listener_->on_start(cached); }
  void on_prefill(const engine::PrefillProgress& progress) override {
    {
      const std::scoped_lock lock(loop_.mutex_);
      loop_.status_.activity = Activity::Prefill;
    }
    listener_->on_prefill(progress);
  }
  void on_prompt_logits(size_t position, std::span<const float> logits) override {
    listener_->on_prompt_logits(position, logits);
  }
  bool on_token(uint32_t answer, TokenId token, std::span<const float> logits) override {
    return listener_->on_token(answer, token, logits);
  }
  void on_answer_end(uint32_t answer, engine::StopReason reason) override {
    listener_->on_answer_end(answer, reason);
  }
  void on_end(const Status& status) override {
    {
      const std::scoped_lock lock(loop_.mutex_);
      loop_.running_.erase(ticket_);
      const bool is_ours = !status && (status.error().code == ErrorCode::Io ||
                                       status.error().code == ErrorCode::BadModel);
      if (is_ours) {
        ++loop_.status_.failed_requests;
        loop_.status_.last_failure = status.error().what;
      } else if (status) {
        loop_.status_.last_failure.clear();
      }
    }
    listener_->on_end(status);
  }

 private:
  EngineLoop& loop_;
  Ticket ticket_;
  std::shared_ptr<engine::RequestListener> listener_;
};

Ticket EngineLoop::submit(engine::ScheduledRequest request,
                          std::shared_ptr<engine::RequestListener> listener) {
  const std::scoped_lock lock(mutex_);
  const Ticket ticket = next_ticket_++;
  arrivals_.push_back({ticket, std::move(request), std::move(listener)});
  wake_.notify_one();
  return ticket;
}

void EngineLoop::cancel(Ticket ticket) {
  const std::scoped_lock lock(mutex_);
  const auto running = running_.find(ticket);
  if (running != running_.end() && scheduler_ != nullptr) {
    scheduler_->cancel(running->second);
  } else if (ticket == arriving_ ||
             std::ranges::find(arrivals_, ticket, &Arrival::ticket) != arrivals_.end()) {
    cancelled_.push_back(ticket);
  }
  wake_.notify_one();
}

EngineStatus EngineLoop::status() const {
  const std::scoped_lock lock(mutex_);
  EngineStatus status = status_;
  if (status.state == ServerState::Ready && !status.last_failure.empty())
    status.state = ServerState::Degraded;
  if (draining_) status.state = ServerState::Draining;
  if (engine_ != nullptr) status.position = engine_->position();
  status.scheduler.waiting += arrivals_.size();
  return status;
}

void EngineLoop::drain() {
  const std::scoped_lock lock(mutex_);
  draining_ = true;
  wake_.notify_one();
}

void EngineLoop::stop() {
  const std::scoped_lock lock(mutex_);
  draining_ = true;
  stopping_ = true;
  if (scheduler_ != nullptr)
    for (const auto& [ticket, id] : running_) scheduler_->cancel(id);
  wake_.notify_one();
}

void EngineLoop::note_loading(double fraction) {
  const std::scoped_lock lock(mutex_);
  status_.loading_fraction = fraction;
}

void EngineLoop::take_arrivals(engine::Scheduler& scheduler) {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (arrivals_.empty()) return;
    Arrival arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    const bool is_cancelled = std::erase(cancelled_, arrival.ticket) > 0 || stopping_;
    arriving_ = is_cancelled ? 0 : arrival.ticket;
    lock.unlock();
    if (is_cancelled) {
      arrival.listener->on_end(fail(ErrorCode::Cancelled, "stopped on request"));
      continue;
    }
    const Result<engine::RequestId> id =
        scheduler.submit(std::move(arrival.request),
                         std::make_shared<Watcher>(*this, arrival.ticket, arrival.listener));
    lock.lock();
    // From now on cancel() finds it among those that run, or nothing is left to be cancelled.
    arriving_ = 0;
    const bool cancelled_meanwhile = std::erase(cancelled_, arrival.ticket) > 0;
    if (id) {
      running_.emplace(arrival.ticket, *id);
      if (cancelled_meanwhile || stopping_) scheduler.cancel(*id);
      continue;
    }
    lock.unlock();
    arrival.listener->on_end(std::unexpected(id.error()));
  }
}

void EngineLoop::publish(const engine::Engine& engine, const engine::Scheduler& scheduler) {
  const std::chrono::nanoseconds now = clock_.now();
  const engine::SchedulerCounters counters = scheduler.snapshot();
  const bool is_idle = counters.running + counters.waiting == 0;
  if (!is_idle && now - published_ < kPublishInterval) return;
  published_ = now;
  engine::EngineCounters all = engine.snapshot();
  const std::scoped_lock lock(mutex_);
  status_.state = ServerState::Ready;
  status_.loading_fraction = 1;
  // A prefill says so itself, layer by layer.
  if (is_idle)
    status_.activity = Activity::Idle;
  else if (counters.decode_passes != status_.scheduler.decode_passes &&
           counters.prefill_passes == status_.scheduler.prefill_passes &&
           all.passes != status_.engine.passes)
    status_.activity = Activity::Decode;
  status_.engine = std::move(all);
  status_.scheduler = counters;
}

void EngineLoop::run(engine::Engine& engine, const engine::SchedulerOptions& options) {
  engine::Scheduler scheduler(engine, options);
  {
    const std::scoped_lock lock(mutex_);
    engine_ = &engine;
    scheduler_ = &scheduler;
  }
  for (;;) {
    take_arrivals(scheduler);
    const bool worked = scheduler.step();
    publish(engine, scheduler);
    if (worked) continue;
    std::unique_lock lock(mutex_);
    if (!arrivals_.empty()) continue;
    if (draining_) break;
    wake_.wait_for(lock, kIdleWait);
    if (arrivals_.empty()) continue;
    // What arrives together is read in one pass, each expert once for all.
    lock.unlock();
    std::this_thread::sleep_for(kGather);
  }
  const std::scoped_lock lock(mutex_);
  engine_ = nullptr;
  scheduler_ = nullptr;
}

}  // namespace deltafin::serve
