// y = W x for every kernel variant, format and number of columns, on one core and on all: bytes of
// weights per second (what decode is made of) and arithmetic per second (what prefill is made of).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "numerics/kernels.h"
#include "roofs.h"
#include "row.h"
#include "workload.h"

namespace deltafin::bench {
namespace {

using numerics::Kernels;
using numerics::WeightFormat;
using numerics::WeightMatrix;

// Rows of a matrix that one iteration multiplies. The baseline is the definition, not fast, and
// does not see the speed of memory: a few blocks show what it does.
constexpr size_t kBaselineRows = 256;

bool is_baseline(const Kernels& kernels) { return std::string_view(kernels.name) == "baseline"; }

// The registers a variant computes with, and so the roof it is judged by.
size_t vector_bits(const Kernels& kernels) {
  const std::string_view name = kernels.name;
  if (name == "avx512") return 512;
  return name == "avx2" ? 256 : widest_vector_bits();
}

// Trunks are BF16 (F32 is beside it for comparison), experts MXFP4.
WeightPool& pool_of(WeightFormat format) {
  static std::map<WeightFormat, WeightPool> pools;
  static constexpr Shape kTrunks[] = {kTrunk}, kExperts[] = {kExpertUp, kExpertDown};
  const std::span<const Shape> shapes =
      format == WeightFormat::Mxfp4 ? std::span<const Shape>(kExperts) : kTrunks;
  return pools.try_emplace(format, format, shapes).first->second;
}

void product(benchmark::State& state, const Kernels& kernels, WeightFormat format) {
  const size_t column_count = size_t(state.range(0));
  ThreadTeam& team = team_of(size_t(state.range(1)));
  WeightPool& pool = pool_of(format);
  std::map<size_t, Columns> columns;  // by the width of the matrix
  for (const WeightMatrix& weights : pool.matrices())
    columns.try_emplace(weights.cols, kernels, weights, column_count);

  double bytes = 0, flop = 0;  // of one iteration: the same for every shape of a pool
  for (auto _ : state) {
    WeightMatrix weights = pool.next();
    if (is_baseline(kernels)) weights = weights.row_range(0, kBaselineRows);
    multiply(team, kernels.product, weights, columns.at(weights.cols));
    bytes = double(weight_bytes(weights));
    flop = 2.0 * double(weights.rows * weights.cols * column_count);
  }
  static ReadRoof read_roof;
  set_counters(state, bytes, flop, read_roof.measure(team), fma_roof(team, vector_bits(kernels)));
}

const bool registered = [] {
  constexpr struct {
    WeightFormat format;
    const char* name;
  } kFormats[] = {
      {WeightFormat::Bf16, "bf16"}, {WeightFormat::F32, "f32"}, {WeightFormat::Mxfp4, "mxfp4"}};
  for (const auto& format : kFormats)
    for (const Kernels& kernels : numerics::kernel_variants()) {
      auto* rows = benchmark::RegisterBenchmark(
          (std::string("product/") + kernels.name + "/" + format.name).c_str(), product, kernels,
          format.format);
      rows->ArgNames({"columns", "cores"})->UseRealTime();
      for (const size_t columns : kColumnCounts)
        for (const size_t cores : core_counts()) rows->Args({int64_t(columns), int64_t(cores)});
    }
  return true;
}();

}  // namespace
}  // namespace deltafin::bench
