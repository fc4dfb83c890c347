// The main function of every benchmark program.
//
//   product_bench [--record=FOLDER] [--commit=ID] [flags of Google Benchmark]
//
// --record appends the rows to FOLDER/<machine>.jsonl; --commit is what they name as their source.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "base/machine.h"
#include "recorder.h"

namespace {

// Takes "--NAME=VALUE" out of the arguments.
std::string take_flag(int& count, char** arguments, std::string_view name) {
  std::string value;
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument.starts_with(name)) {
      value = argument.substr(name.size());
    } else {
      arguments[kept++] = arguments[i];
    }
  }
  count = kept;
  return value;
}

}  // namespace

int main(int count, char** arguments) {
  using namespace deltafin;
  const std::string folder = take_flag(count, arguments, "--record=");
  const std::string commit = take_flag(count, arguments, "--commit=");
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;

  std::ofstream lines;
  if (!folder.empty()) {
    const std::string path =
        folder + "/" + bench::machine_slug(bench::processor(), usable_core_count()) + ".jsonl";
    lines.open(path, std::ios::app);
    if (!lines) {
      std::fprintf(stderr, "cannot append to %s\n", path.c_str());
      return 1;
    }
  }
  bench::Recorder recorder(commit.empty() ? "unknown" : commit, folder.empty() ? nullptr : &lines);
  benchmark::RunSpecifiedBenchmarks(&recorder);
  benchmark::Shutdown();
  return 0;
}
