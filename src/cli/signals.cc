#include "cli/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace deltafin::cli {

namespace {

// A handler has no other way to its state than globals; only lock-free atomics are safe in it.
CancelToken stop_token;
std::atomic<int> stop_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void on_stop_signal(int number) {
  int none = 0;
  if (!stop_signal.compare_exchange_strong(none, number)) _exit(130);
  stop_token.cancel();
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  // Who started us in the background, with the signal ignored, wants it to stay so.
  if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: waiting for a terminal must end
  ::sigaction(number, &action, nullptr);
}

}  // namespace

CancelToken& install_signal_handlers() {
  handle(SIGINT, on_stop_signal);
  handle(SIGTERM, on_stop_signal);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
  return stop_token;
}

const char* stop_signal_name() {
  switch (stop_signal.load()) {
    case 0:
      return nullptr;
    case SIGINT:
      return "Ctrl-C";
    default:
      return "SIGTERM";
  }
}

bool forget_interrupt() {
  if (stop_signal.load() == SIGTERM) return false;
  // In this order: a Ctrl-C between the two ends the process rather than be lost half.
  stop_token.reset();
  stop_signal.store(0);
  return true;
}

}  // namespace deltafin::cli
