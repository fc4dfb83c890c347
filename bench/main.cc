// The main function of the benchmark programs that have none.
//
//   product_bench [--record=FOLDER] [--commit=ID] [flags of Google Benchmark]
//
// --record appends the rows to FOLDER/<machine>.jsonl; --commit is what they name as their source.
#include <benchmark/benchmark.h>

#include "record.h"
#include "recorder.h"

int main(int count, char** arguments) {
  using namespace deltafin;
  std::optional<bench::Recording> recording = bench::Recording::open(count, arguments);
  if (!recording) return 1;
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  bench::Recorder recorder(recording->commit, recording->stream());
  benchmark::RunSpecifiedBenchmarks(&recorder);
  benchmark::Shutdown();
  return 0;
}
