// A stop signal that one thread (or a signal handler) sets and the engine looks at between tiles.
#pragma once

#include <atomic>

#include "base/result.h"

namespace deltafin {

class CancelToken {
 public:
  // Safe inside a signal handler: one lock-free store.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // For the next piece of work, when whoever was told to stop has stopped.
  void reset() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // For use in TRY_STATUS between two tiles of work.
  Status check() const {
    if (cancelled()) return fail(ErrorCode::Cancelled, "stopped on request");
    return {};
  }

 private:
  std::atomic<bool> cancelled_ = false;
  static_assert(std::atomic<bool>::is_always_lock_free);
};

}  // namespace deltafin
