#include "recorder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace deltafin::bench {
namespace {

using Report = benchmark::BenchmarkReporter::Run;

// 4 iterations in `seconds`.
Report run_of(double seconds) {
  Report run;
  run.run_name.function_name = "product/avx2";
  run.run_name.args = "columns:1";
  run.run_name.time_type = "real_time";
  run.iterations = 4;
  run.real_accumulated_time = seconds;
  run.counters["bytes"] = 6e9 / seconds;
  run.counters["flop"] = 2e9 / seconds;
  run.counters["read_roof"] = 10e9;
  run.counters["fma_roof"] = 100e9;
  return run;
}

TEST(Recorder, WritesOneJsonLineForAllRepetitions) {
  std::ostringstream lines;
  Recorder recorder("abc123", &lines);
  recorder.ReportRuns({run_of(1), run_of(3), run_of(2)});
  EXPECT_EQ(lines.str().find('\n'), lines.str().size() - 1);
  const nlohmann::json row = nlohmann::json::parse(lines.str());
  EXPECT_EQ(row["commit"], "abc123");
  EXPECT_EQ(row["name"], "product/avx2/columns:1");
  EXPECT_EQ(row["repetitions"], 3);
  EXPECT_EQ(row["seconds"], 0.5);
  EXPECT_EQ(row["bytes_per_second"], 3e9);
  EXPECT_EQ(row["gflop_per_second"], 1);
  EXPECT_EQ(row["roof"], "ram");
  EXPECT_DOUBLE_EQ(row["ratio"], 0.3);
  EXPECT_EQ(row["load"].size(), 2u);
}

TEST(Recorder, PassesOverAggregatesAndFailedRuns) {
  std::ostringstream lines;
  Recorder recorder("abc123", &lines);
  Report aggregate = run_of(1), failed = run_of(1);
  aggregate.run_type = Report::RT_Aggregate;
  failed.error_occurred = true;
  recorder.ReportRuns({aggregate});
  recorder.ReportRuns({failed});
  recorder.ReportRuns({});
  EXPECT_EQ(lines.str(), "");
}

}  // namespace
}  // namespace deltafin::bench
