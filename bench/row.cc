#include "row.h"

#include <algorithm>
#include <vector>

namespace deltafin::bench {

namespace {

double median_of(std::span<const Repetition> repetitions, double Repetition::* field) {
  std::vector<double> values;
  for (const Repetition& repetition : repetitions) values.push_back(repetition.*field);
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double share(double reached, double roof) { return roof > 0 ? reached / roof : 0; }

}  // namespace

Row make_row(std::string name, std::span<const Repetition> repetitions) {
  Row row;
  row.name = std::move(name);
  row.repetitions = repetitions.size();
  for (const auto field : {&Repetition::seconds, &Repetition::bytes, &Repetition::flop,
                           &Repetition::read_roof, &Repetition::fma_roof})
    row.median.*field = median_of(repetitions, field);
  const double of_ram = share(row.median.bytes, row.median.read_roof);
  const double of_fma = share(row.median.flop, row.median.fma_roof);
  row.bound = of_ram >= of_fma ? "ram" : "fma";
  row.ratio = std::max(of_ram, of_fma);
  return row;
}

void set_counters(benchmark::State& state, double bytes, double flop, double read_roof,
                  double fma_roof) {
  using benchmark::Counter;
  const Counter::Flags rate = Counter::kIsIterationInvariantRate;
  state.counters["bytes"] = Counter(bytes, rate);
  state.counters["flop"] = Counter(flop, rate);
  state.counters["read_roof"] = read_roof;
  state.counters["fma_roof"] = fma_roof;
}

Repetition repetition_of(const benchmark::BenchmarkReporter::Run& run) {
  const auto counter = [&](const char* name) {
    const auto found = run.counters.find(name);
    return found == run.counters.end() ? 0 : double(found->second);
  };
  return {.seconds = run.real_accumulated_time / double(run.iterations),
          .bytes = counter("bytes"),
          .flop = counter("flop"),
          .read_roof = counter("read_roof"),
          .fma_roof = counter("fma_roof")};
}

}  // namespace deltafin::bench
