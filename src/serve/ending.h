// How a server ends when a signal says so: what runs may end, for a while.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/cancel.h"
#include "base/clock.h"
#include "serve/engine_loop.h"

namespace deltafin::serve {

class Ending {
 public:
  // The references must outlive it. `tell` is called once, with how many requests have still to
  // end.
  Ending(EngineLoop& loop, const Clock& clock, std::chrono::seconds limit,
         const CancelToken& signal, std::function<void(uint64_t left)> tell);

  // Looks whether it is time; called again and again, by one thread at a time.
  void tick();

 private:
  EngineLoop& loop_;
  const Clock& clock_;
  std::chrono::seconds limit_;
  const CancelToken& signal_;
  std::function<void(uint64_t)> tell_;
  std::optional<std::chrono::nanoseconds> deadline_;
};

}  // namespace deltafin::serve
