#include "serve/ticker.h"

#include <gtest/gtest.h>

#include <atomic>

namespace deltafin::serve {
namespace {

TEST(Ticker, CallsAgainAndAgainAndNeverAfterItsEnd) {
  std::atomic<int> count = 0;
  {
    const Result<std::unique_ptr<Ticker>> ticker =
        Ticker::start(std::chrono::milliseconds(1), [&] { ++count; });
    ASSERT_TRUE(ticker);
    while (count < 3) std::this_thread::yield();
  }
  const int at_end = count;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(count, at_end);
}

TEST(Ticker, DoesNotWaitOutItsPauseToEnd) {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<bool> is_called = false;
  {
    const Result<std::unique_ptr<Ticker>> ticker =
        Ticker::start(std::chrono::hours(1), [&] { is_called = true; });
    ASSERT_TRUE(ticker);
    while (!is_called) std::this_thread::yield();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1));
}

}  // namespace
}  // namespace deltafin::serve
