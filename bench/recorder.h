// Prints one line of a table for each benchmark, and appends it as one JSON object to a file.
#pragma once

#include <benchmark/benchmark.h>

#include <ostream>
#include <string>
#include <vector>

#include "machine.h"
#include "row.h"

namespace deltafin::bench {

class Recorder final : public benchmark::BenchmarkReporter {
 public:
  // `commit` names the source the program was built from. `lines` gets the JSON, null: nobody does;
  // it outlives the recorder.
  Recorder(std::string commit, std::ostream* lines);

  bool ReportContext(const Context& context) override;
  // All repetitions of one benchmark at once. The aggregates of the library are passed over: they
  // know no roof.
  void ReportRuns(const std::vector<Run>& runs) override;

 private:
  std::string commit_;
  std::ostream* lines_;
  double load_at_start_;
  Others others_;
};

}  // namespace deltafin::bench
