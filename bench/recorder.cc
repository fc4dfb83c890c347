#include "recorder.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "base/thread_team.h"
#include "record.h"

namespace deltafin::bench {

namespace {

// Above this share of others a row says nothing about us.
constexpr double kBusy = 0.05;

// Like "product/avx512/bf16/columns:1/cores:2": without what is the same for all.
std::string name_of(const benchmark::BenchmarkReporter::Run& run) {
  const auto& name = run.run_name;
  return name.args.empty() ? name.function_name : name.function_name + "/" + name.args;
}

std::string duration(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6)
                        : fmt::format("{:.2f} ms", seconds * 1e3);
}

}  // namespace

Recorder::Recorder(std::string commit, std::ostream* lines)
    : commit_(std::move(commit)), lines_(lines), load_at_start_(load_average()) {}

bool Recorder::ReportContext(const Context&) {
  fmt::print("{}, {} cores, load {:.2f}, commit {}\n", processor(), usable_core_count(),
             load_at_start_, commit_);
  fmt::print("{:<52} {:>11} {:>8} {:>8}  {}\n", "median of the repetitions", "time", "GB/s",
             "GFLOP/s", "of the roof");
  return true;
}

void Recorder::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Repetition> repetitions;
  for (const Run& run : runs) {
    if (run.error_occurred) {
      fmt::print("{:<52} {}\n", name_of(run), run.error_message);
    } else if (run.run_type == Run::RT_Iteration) {
      repetitions.push_back(repetition_of(run));
    }
  }
  if (repetitions.empty()) return;

  const Row row = make_row(name_of(runs.front()), repetitions);
  const Repetition& median = row.median;
  const double others = others_.look();
  fmt::print("{:<52} {:>11} {:>8.3g} {:>8.2f}  {:.2f} {}{}\n", row.name, duration(median.seconds),
             median.bytes / 1e9, median.flop / 1e9, row.ratio, row.bound,
             others > kBusy ? fmt::format("  (others used {:.0f} %)", others * 100) : "");
  std::fflush(stdout);
  if (lines_ == nullptr) return;
  nlohmann::ordered_json line = row_start(commit_, row.name);
  line.update(nlohmann::ordered_json{{"repetitions", row.repetitions},
                                     {"seconds", median.seconds},
                                     {"bytes_per_second", median.bytes},
                                     {"gflop_per_second", median.flop / 1e9},
                                     {"read_roof_bytes_per_second", median.read_roof},
                                     {"fma_roof_gflop_per_second", median.fma_roof / 1e9},
                                     {"roof", row.bound},
                                     {"ratio", row.ratio},
                                     {"load", {load_at_start_, load_average()}},
                                     {"others", others}});
  *lines_ << line << std::endl;  // at once: a run that is cut short keeps its rows
}

}  // namespace deltafin::bench
