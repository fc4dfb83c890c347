#include "checkpoint/problems.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace deltafin::checkpoint {
namespace {

using testing::HasSubstr;
using testing::Not;

Problem missing(int number) {
  return {.kind = ProblemKind::MissingTensor,
          .tensor = fmt::format("t{}", number),
          .message = "gone",
          .advice = "fetch it"};
}

TEST(Problems, KeepTheFirstOfAKindAndCountTheRest) {
  ProblemList problems;
  for (int i = 0; i < 1000; ++i) problems.add(missing(i));
  problems.add({.severity = Severity::Note, .kind = ProblemKind::UnusedFile, .message = "idle"});
  EXPECT_EQ(problems.kept().size(), ProblemList::kKeptOfEachKind + 1);
  EXPECT_EQ(problems.error_count(), 1000u);
  EXPECT_EQ(problems.count_of(ProblemKind::MissingTensor), 1000u);
}

TEST(Problems, OneErrorIsOneLineAndItsAdvice) {
  ProblemList problems;
  problems.add(missing(1));
  const Error error = problems.to_error("/m");
  EXPECT_EQ(error.code, ErrorCode::BadModel);
  EXPECT_EQ(error.what, "/m: tensor t1: gone\n  fetch it");
}

TEST(Problems, ManyErrorsShowTheFirstEightAndGiveAdviceOnce) {
  ProblemList problems;
  problems.add({.severity = Severity::Note, .kind = ProblemKind::UnusedFile, .message = "idle"});
  for (int i = 0; i < 12; ++i) problems.add(missing(i));
  const std::string what = problems.to_error("/m").what;
  EXPECT_THAT(what, testing::StartsWith("/m: 12 problems keep this checkpoint from opening\n"));
  EXPECT_THAT(what, HasSubstr("tensor t7: gone"));
  EXPECT_THAT(what, Not(HasSubstr("t8")));
  EXPECT_THAT(what, Not(HasSubstr("idle")));
  EXPECT_THAT(what, testing::EndsWith("and 4 more; `deltafin inspect` lists them\n  fetch it"));
}

TEST(Problems, AreTheDisksFaultOnlyIfAllOfThemAre) {
  ProblemList problems;
  problems.add({.kind = ProblemKind::UnreadableFile, .message = "EIO"});
  EXPECT_EQ(problems.to_error("/m").code, ErrorCode::Io);
  problems.add(missing(1));
  EXPECT_EQ(problems.to_error("/m").code, ErrorCode::BadModel);
}

TEST(Problems, HaveANameForEveryKind) {
  std::set<std::string> names;
  for (size_t i = 0; i < kProblemKindCount; ++i) {
    names.insert(name_of(static_cast<ProblemKind>(i)));
  }
  EXPECT_EQ(names.size(), kProblemKindCount);
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace deltafin::checkpoint
