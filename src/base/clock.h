// Time as a seam, so that a test can run the engine on simulated time.
#pragma once

#include <chrono>

namespace deltafin {

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic time since some fixed point.
  virtual std::chrono::nanoseconds now() const = 0;
};

class SystemClock final : public Clock {
 public:
  std::chrono::nanoseconds now() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
};

// Stands still until somebody advances it. Not thread-safe: for single-threaded simulations.
class SimulatedClock final : public Clock {
 public:
  std::chrono::nanoseconds now() const override { return now_; }
  void advance(std::chrono::nanoseconds by) { now_ += by; }

 private:
  std::chrono::nanoseconds now_{0};
};

inline double seconds(std::chrono::nanoseconds span) {
  return std::chrono::duration<double>(span).count();
}

}  // namespace deltafin
