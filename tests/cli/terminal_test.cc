// deltafin chat at a terminal: a pseudo-terminal with somebody who types. Not among the quick
// tests: what is typed in the moment between two lines may be lost, and on a busy machine that is
// when a script types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/process.h"

namespace deltafin::test {
namespace {

using testing::HasSubstr;

class Terminal {
 public:
  Terminal(const ScratchFolder& home, std::vector<std::string> arguments) {
    winsize size = {.ws_row = 24, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = ::forkpty(&descriptor_, nullptr, nullptr, &size);
    if (pid_ != 0) return;
    ::setenv("XDG_STATE_HOME", home.path().c_str(), 1);
    ::setenv("HOME", home.path().c_str(), 1);
    ::setenv("TERM", "xterm", 1);
    arguments.insert(arguments.begin(), DELTAFIN_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(DELTAFIN_PROGRAM, argv.data());
    ::_exit(127);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(descriptor_);
  }

  void type(const std::string& keys) const {
    ASSERT_EQ(::write(descriptor_, keys.data(), keys.size()), ssize_t(keys.size()));
  }

  // Whether `text` is shown behind everything that was waited for before.
  bool shows(const std::string& text) {
    return waits_for([&] {
      const size_t at = shown_.find(text, seen_);
      if (at != std::string::npos) seen_ = at + text.size();
      return at != std::string::npos;
    });
  }
  bool shows_bytes(size_t count) {
    return waits_for([&] { return shown_.size() - seen_ >= count; });
  }
  std::string rest() const { return shown_.substr(seen_); }

  // Whether a line that was sent has been answered, and the next one can be typed. What is typed
  // before that may be lost. The editor shows its prompt again and again, so the end of the line
  // comes first.
  bool is_ready_again() { return shows("\n") && shows("> "); }

  // -1: it does not end.
  int exit_status() {
    waits_for([] { return false; });  // all that it still has to say
    for (int tenths = 0; tenths < 300; ++tenths) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      }
      ::usleep(100'000);
    }
    return -1;
  }

 private:
  template <class Condition>
  bool waits_for(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      pollfd ready = {.fd = descriptor_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 100) > 0) {
        char bytes[4096];
        const ssize_t count = ::read(descriptor_, bytes, sizeof bytes);
        if (count <= 0) return false;
        shown_.append(bytes, size_t(count));
      }
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }

  pid_t pid_ = -1;
  int descriptor_ = -1;
  std::string shown_;
  size_t seen_ = 0;
};

constexpr const char* kUp = "\x1b[A";
constexpr const char* kControlC = "\x03";
constexpr const char* kControlD = "\x04";

TEST(TerminalFull, AnswersAndRemembersWhatWasAsked) {
  const ScratchFolder home;
  {
    Terminal terminal(home, {"demo"});
    ASSERT_TRUE(terminal.shows("> ")) << terminal.rest();
    terminal.type("The capital of France is\r");
    EXPECT_TRUE(terminal.shows("is Paris.")) << terminal.rest();
    ASSERT_TRUE(terminal.shows("> "));
    terminal.type(kUp);
    EXPECT_TRUE(terminal.shows("The capital of France is")) << terminal.rest();
    terminal.type("\r");
    EXPECT_TRUE(terminal.is_ready_again()) << terminal.rest();
    terminal.type(kControlD);
    EXPECT_EQ(terminal.exit_status(), 0);
  }
  // Another session knows it too.
  Terminal terminal(home, {"demo"});
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type(kUp);
  EXPECT_TRUE(terminal.shows("The capital of France is")) << terminal.rest();
}

TEST(TerminalFull, ControlCStopsAnAnswerAndNotTheConversation) {
  const ScratchFolder home;
  // Hot enough to reason on and on.
  Terminal terminal(home,
                    {"chat", "demo", "--show-reasoning", "--temperature", "5", "--seed", "1"});
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("Talk.\r");
  // More than a progress bar.
  ASSERT_TRUE(terminal.shows_bytes(2000)) << terminal.rest();
  terminal.type(kControlC);
  EXPECT_TRUE(terminal.shows("stopped after ")) << terminal.rest();
  ASSERT_TRUE(terminal.shows("> ")) << terminal.rest();
  terminal.type("/stats\r");
  EXPECT_TRUE(terminal.shows("1 turn") && terminal.is_ready_again()) << terminal.rest();
  terminal.type(kControlD);
  EXPECT_EQ(terminal.exit_status(), 0);
}

TEST(TerminalFull, ALineThatEndsInABackslashAndAPastedBlockAreOneMessage) {
  const ScratchFolder home;
  Terminal terminal(home, {"demo"});
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("The capital of \\\r");
  ASSERT_TRUE(terminal.shows(". ")) << terminal.rest();
  terminal.type("France is\r");
  ASSERT_TRUE(terminal.is_ready_again()) << terminal.rest();
  terminal.type("one\rtwo\rthree\r");
  ASSERT_TRUE(terminal.shows("three") && terminal.is_ready_again()) << terminal.rest();
  terminal.type("/stats\r");
  EXPECT_TRUE(terminal.shows("2 turns")) << terminal.rest();
}

}  // namespace
}  // namespace deltafin::test
