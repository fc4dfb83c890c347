#include "serve/ticker.h"

#include <fmt/format.h>

#include <csignal>
#include <system_error>

namespace deltafin::serve {

Result<std::unique_ptr<Ticker>> Ticker::start(std::chrono::milliseconds pause,
                                              std::function<void()> tick) {
  std::unique_ptr<Ticker> ticker(new Ticker);
  // Signals are for the threads that know what to do with them.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Status started;
  try {
    ticker->thread_ =
        std::thread([raw = ticker.get(), pause, tick = std::move(tick)] { raw->run(pause, tick); });
  } catch (const std::system_error& error) {
    started = fail(ErrorCode::Io, fmt::format("cannot start a thread: {}", error.what()));
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  TRY_STATUS(started);
  return ticker;
}

Ticker::~Ticker() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Ticker::run(std::chrono::milliseconds pause, const std::function<void()>& tick) {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    lock.unlock();
    tick();
    lock.lock();
    wake_.wait_for(lock, pause, [this] { return ending_; });
  }
}

}  // namespace deltafin::serve
