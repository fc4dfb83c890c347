// The two orders that MXFP4 products could have: block sum (the chosen one) and scale folded into
// the weight. docs/decisions/0007-mxfp4-block-sum.md.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "mxfp4_order/folded.h"
#include "numerics/kernels.h"
#include "roofs.h"
#include "row.h"
#include "workload.h"

namespace deltafin::bench {
namespace {

using numerics::Kernels;
using numerics::OrderedProduct;
using numerics::WeightFormat;
using numerics::WeightMatrix;

constexpr size_t kBlockRows = 64;

WeightPool& experts() {
  static constexpr Shape kShapes[] = {kExpertUp};
  static WeightPool pool(WeightFormat::Mxfp4, kShapes);
  return pool;
}

void product(benchmark::State& state, const Kernels& kernels, OrderedProduct order, size_t bits) {
  const size_t columns = size_t(state.range(0));
  ThreadTeam& team = team_of(size_t(state.range(1)));
  const size_t cols = kExpertUp.cols, stride = numerics::packed_size(cols);
  const Floats x = activations(cols * columns), packed(stride * columns);
  const Floats y(kExpertUp.rows * columns);
  for (size_t c = 0; c < columns; ++c)
    kernels.pack_column(WeightFormat::Mxfp4, x.data() + c * cols, cols, packed.data() + c * stride);
  double bytes = 0, flop = 0;
  for (auto _ : state) {
    const WeightMatrix weights = experts().next();
    team.parallel_for((weights.rows + kBlockRows - 1) / kBlockRows, [&](size_t block) {
      const size_t first = block * kBlockRows, rows = std::min(kBlockRows, weights.rows - first);
      order(weights.row_range(first, rows), packed.data(), stride, columns, y.data() + first,
            weights.rows);
    });
    bytes = double(weight_bytes(weights));
    flop = 2.0 * double(weights.rows * weights.cols * columns);
  }
  static ReadRoof read_roof;
  set_counters(state, bytes, flop, read_roof.measure(team), fma_roof(team, bits));
}

void add(const char* isa, const numerics::OrderedProducts& orders, size_t bits) {
  const Kernels* kernels = numerics::find_kernels(isa);
  if (kernels == nullptr) return;  // not on this processor
  const auto add_order = [&](const char* name, OrderedProduct order) {
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
