#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace deltafin::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST(TimeLeft, ExpectsTheRestToGoAsFast) {
  EXPECT_EQ(time_left({.fraction = 0.25, .elapsed = seconds(10)}), seconds(30));
  EXPECT_EQ(time_left({.fraction = 0.5, .elapsed = seconds(10)}), seconds(10));
}

TEST(TimeLeft, IsUnknownAtFirstAndNothingAtTheEnd) {
  EXPECT_LT(time_left({.fraction = 1, .elapsed = seconds(10)}), nanoseconds(0));
  EXPECT_LT(time_left({.fraction = 1.5, .elapsed = seconds(10)}), nanoseconds(0));
  EXPECT_LT(time_left({.fraction = 0, .elapsed = seconds(10)}), nanoseconds(0));
  EXPECT_LT(time_left({.fraction = 0.5, .elapsed = milliseconds(100)}), nanoseconds(0));
}

TEST(RenderBar, ShowsShareDetailAndTimeLeft) {
  EXPECT_EQ(render_bar({.what = "prefill",
                        .fraction = 0.5,
                        .elapsed = seconds(12),
                        .detail = "512 of 1,024 tokens"},
                       200),
            "prefill  [##########----------]  50 %  ETA 12 s  512 of 1,024 tokens");
}

TEST(RenderBar, FitsIntoTheTerminal) {
  const Progress progress{.what = "prefill", .fraction = 0.5, .elapsed = seconds(1), .detail = "x"};
  for (const size_t width : {0u, 1u, 2u, 20u, 80u})
    EXPECT_LT(render_bar(progress, width).size(), std::max<size_t>(width, 2)) << width;
}

TEST(RenderLine, IsASentenceForALog) {
  EXPECT_EQ(render_line({.what = "prefill",
                         .fraction = 0.25,
                         .elapsed = seconds(10),
                         .detail = "256 of 1,024 tokens"}),
            "prefill: 25 %, 256 of 1,024 tokens, 30 s left");
  EXPECT_EQ(render_line({.what = "loading", .fraction = 0}), "loading: 0 %");
}

class ProgressMeterTest : public testing::Test {
 protected:
  ProgressMeter meter(ProgressStyle style) {
    return ProgressMeter("work", style, clock_,
                         [this](std::string_view text) { shown_.emplace_back(text); });
  }
  SimulatedClock clock_;
  std::vector<std::string> shown_;
};

TEST_F(ProgressMeterTest, IsSilentAboutShortWork) {
  for (const ProgressStyle style : {ProgressStyle::Bar, ProgressStyle::Lines}) {
    ProgressMeter work = meter(style);
    work.update(0.1, "");
    clock_.advance(milliseconds(200));
    work.update(1, "");
    work.finish();
  }
  EXPECT_THAT(shown_, IsEmpty());
}

TEST_F(ProgressMeterTest, PrintsALineEveryTwoSeconds) {
  ProgressMeter work = meter(ProgressStyle::Lines);
  for (int i = 0; i < 50; ++i) {
    clock_.advance(milliseconds(100));
    work.update(0.02 * (i + 1), "");
  }
  work.finish();
  EXPECT_THAT(shown_, ElementsAre("work: 40 %, 3.0 s left\n", "work: 80 %, 1.0 s left\n"));
}

TEST_F(ProgressMeterTest, RedrawsABarAndErasesIt) {
  {
    ProgressMeter work = meter(ProgressStyle::Bar);
    clock_.advance(milliseconds(400));
    work.update(0.25, "a");
    work.update(0.26, "b");  // too soon
    clock_.advance(milliseconds(100));
    work.update(0.5, "c");
  }
  ASSERT_EQ(shown_.size(), 3u);
  EXPECT_THAT(shown_[0], StartsWith("\r\x1b[Kwork  ["));
  EXPECT_THAT(shown_[1], HasSubstr("50 %"));
  EXPECT_THAT(shown_[1], Not(EndsWith("\n")));
  EXPECT_EQ(shown_[2], "\r\x1b[K");
}

}  // namespace
}  // namespace deltafin::cli
