// One row of a results file: what a benchmark reached in the median of its repetitions, and how
// much of the roof that is.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace deltafin::bench {

// One repetition. Rates are per second. The roofs were measured right after it with as many
// threads.
struct Repetition {
  double seconds = 0;  // of one iteration
  double bytes = 0;    // of weights
  double flop = 0;
  double read_roof = 0;
  double fma_roof = 0;
};

struct Row {
  std::string name;
  size_t repetitions = 0;
  Repetition median;       // of each field on its own
  std::string_view bound;  // the nearer roof: "ram" or "fma"
  double ratio = 0;        // what was reached, as a share of that roof
};

// At least one repetition.
Row make_row(std::string name, std::span<const Repetition> repetitions);

// How a benchmark passes these on: call it once, after the loop. bytes and flop are of one
// iteration.
void set_counters(benchmark::State& state, double bytes, double flop, double read_roof,
                  double fma_roof);
Repetition repetition_of(const benchmark::BenchmarkReporter::Run& run);

}  // namespace deltafin::bench
