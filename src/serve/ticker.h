// Calls something again and again on a thread of its own, whatever the others are doing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/result.h"

namespace deltafin::serve {

class Ticker {
 public:
  // `tick` must not throw. Errors: Io, when there is no thread to have.
  static Result<std::unique_ptr<Ticker>> start(std::chrono::milliseconds pause,
                                               std::function<void()> tick);
  // Waits for the tick that is under way.
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  Ticker() = default;
  void run(std::chrono::milliseconds pause, const std::function<void()>& tick);

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace deltafin::serve
