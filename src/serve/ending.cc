#include "serve/ending.h"

#include <utility>

namespace deltafin::serve {

Ending::Ending(EngineLoop& loop, const Clock& clock, std::chrono::seconds limit,
               const CancelToken& signal, std::function<void(uint64_t)> tell)
    : loop_(loop), clock_(clock), limit_(limit), signal_(signal), tell_(std::move(tell)) {}

void Ending::tick() {
  if (!signal_.cancelled()) return;
  if (!deadline_) {
    deadline_ = clock_.now() + limit_;
    loop_.drain();
    const EngineStatus status = loop_.status();
    const uint64_t left = status.scheduler.running + status.scheduler.waiting;
    if (left > 0) tell_(left);
  }
  if (clock_.now() >= *deadline_) loop_.stop();
}

}  // namespace deltafin::serve
