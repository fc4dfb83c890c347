// The two orders that MXFP4 products could have: block sum (the chosen one) and scale folded into
// the weight. docs/decisions/0007-mxfp4-block-sum.md.
#include <benchmark/benchmark.h>

#include <string>

#include "mxfp4_order/folded.h"
#include "numerics/kernels.h"
#include "roofs.h"
#include "row.h"
#include "workload.h"

namespace deltafin::bench {
namespace {

using numerics::Kernels;
using numerics::WeightFormat;
using numerics::WeightMatrix;

WeightPool& experts() {
  static constexpr Shape kShapes[] = {kExpertUp};
  static WeightPool pool(WeightFormat::Mxfp4, kShapes);
  return pool;
}

void product(benchmark::State& state, const Kernels& kernels, Product order, size_t bits) {
  const size_t column_count = size_t(state.range(0));
  ThreadTeam& team = team_of(size_t(state.range(1)));
  const Columns columns(kernels, experts().matrices().front(), column_count);
  double bytes = 0, flop = 0;
  for (auto _ : state) {
    const WeightMatrix weights = experts().next();
    multiply(team, order, weights, columns);
    bytes = double(weight_bytes(weights));
    flop = 2.0 * double(weights.rows * weights.cols * column_count);
  }
  static ReadRoof read_roof;
  set_counters(state, bytes, flop, read_roof.measure(team), fma_roof(team, bits));
}

void add(const char* isa, const numerics::OrderedProducts& orders, size_t bits) {
  const Kernels* kernels = numerics::find_kernels(isa);
  if (kernels == nullptr) return;  // not on this processor
  const auto add_order = [&](const char* name, Product order) {
    auto* rows = benchmark::RegisterBenchmark(
        ("mxfp4_order/" + std::string(isa) + "/" + name).c_str(), product, *kernels, order, bits);
    rows->ArgNames({"columns", "cores"})->UseRealTime();
    for (const size_t columns : {1u, 2u, 4u, 8u, 16u, 64u})
      for (const size_t cores : core_counts()) rows->Args({int64_t(columns), int64_t(cores)});
  };
  add_order("block_sum", orders.block_sum);
  add_order("folded", orders.folded);
}

const bool registered = [] {
  add("avx2", numerics::avx2::kOrders, 256);
  add("avx512", numerics::avx512::kOrders, 512);
  return true;
}();

}  // namespace
}  // namespace deltafin::bench
