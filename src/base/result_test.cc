#include "base/result.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <set>
#include <thread>

#include "base/cancel.h"
#include "base/check.h"
#include "base/clock.h"

namespace deltafin {
namespace {

constexpr ErrorCode kAllCodes[] = {ErrorCode::Usage, ErrorCode::BadModel, ErrorCode::OverBudget,
                                   ErrorCode::Io,    ErrorCode::Mismatch, ErrorCode::Cancelled};

TEST(Error, HasTheDocumentedExitCodes) {
  EXPECT_EQ(exit_code(ErrorCode::Usage), 2);
  EXPECT_EQ(exit_code(ErrorCode::BadModel), 3);
  EXPECT_EQ(exit_code(ErrorCode::OverBudget), 4);
  EXPECT_EQ(exit_code(ErrorCode::Io), 5);
  EXPECT_EQ(exit_code(ErrorCode::Mismatch), 6);
  EXPECT_EQ(exit_code(ErrorCode::Cancelled), 130);
}

TEST(Error, DescribesEveryCodeInItsOwnWords) {
  std::set<std::string> texts;
  for (const ErrorCode code : kAllCodes) texts.insert(describe(code));
  EXPECT_EQ(texts.size(), std::size(kAllCodes));
  EXPECT_FALSE(texts.contains("error"));  // the fallback of the table
}

TEST(Error, CollectsThePlacesItClimbsThrough) {
  const Error error = Error{ErrorCode::Io, "no such file"}.within("shard 3").within("layer 12");
  EXPECT_EQ(error.what, "layer 12: shard 3: no such file");
  EXPECT_EQ(error.code, ErrorCode::Io);
}

Result<std::unique_ptr<int>> make(int value) {
  if (value < 0) return fail(ErrorCode::Usage, "negative");
  return std::make_unique<int>(value);
}

Status check_even(int value) {
  if (value % 2 != 0) return fail(ErrorCode::Mismatch, "odd");
  return {};
}

Result<int> sum_of_evens(int a, int b) {
  TRY(const std::unique_ptr<int> first, make(a));
  TRY(const std::unique_ptr<int> second, make(b));  // two in one scope
  TRY_STATUS(check_even(*first));
  TRY_STATUS(check_even(*second));
  return *first + *second;
}

TEST(Try, GivesTheValueOrReturnsTheFirstError) {
  EXPECT_EQ(sum_of_evens(2, 4).value(), 6);
  EXPECT_EQ(sum_of_evens(-2, 3).error().what, "negative");
  EXPECT_EQ(sum_of_evens(2, -3).error().code, ErrorCode::Usage);
  EXPECT_EQ(sum_of_evens(2, 3).error().what, "odd");
}

CancelToken* token_of_handler = nullptr;

TEST(CancelToken, StopsWhoLooksAtIt) {
  CancelToken token;
  EXPECT_FALSE(token.cancelled());
  EXPECT_TRUE(token.check());
  token.cancel();
  EXPECT_TRUE(token.cancelled());
  ASSERT_FALSE(token.check());
  EXPECT_EQ(token.check().error().code, ErrorCode::Cancelled);
}

TEST(CancelToken, MayBeSetFromAnotherThreadAndFromASignalHandler) {
  CancelToken token;
  std::thread other([&] { token.cancel(); });
  while (!token.cancelled()) std::this_thread::yield();
  other.join();

  CancelToken by_signal;
  token_of_handler = &by_signal;
  void (*const before)(int) = std::signal(SIGUSR1, [](int) { token_of_handler->cancel(); });
  std::raise(SIGUSR1);
  std::signal(SIGUSR1, before);
  EXPECT_TRUE(by_signal.cancelled());
}

TEST(Clock, TheSystemClockNeverGoesBack) {
  const SystemClock clock;
  const std::chrono::nanoseconds first = clock.now();
  EXPECT_LE(first, clock.now());
}

TEST(Clock, TheSimulatedClockStandsStillUntilItIsAdvanced) {
  SimulatedClock clock;
  const std::chrono::nanoseconds start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(std::chrono::milliseconds(1500));
  EXPECT_DOUBLE_EQ(deltafin::seconds(clock.now() - start), 1.5);
}

TEST(CheckDeathTest, NamesTheConditionAndThePlace) {
  const int three = 3;
  CHECK(three == 3);
  EXPECT_DEATH(CHECK(three == 4), "internal error: three == 4 does not hold .*result_test.cc:");
}

}  // namespace
}  // namespace deltafin
