// Weight products on one core: bytes of weights per second (what decode is made of) and arithmetic
// per second (what prefill is made of), for every kernel variant, format and number of columns.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "base/philox.h"
#include "numerics/kernels.h"

namespace deltafin::numerics {
namespace {

constexpr size_t kCols = 7168;

// Larger than the last-level cache, so that one column runs at the speed of memory.
constexpr size_t kWeightBytes = 96ull << 20;

struct Weights {
  explicit Weights(WeightFormat format) {
    matrix.format = format;
    matrix.cols = kCols;
    matrix.rows = kWeightBytes / matrix.row_bytes();
    Random random(1);
    storage.resize(kWeightBytes);
    for (size_t i = 0; i + 4 <= storage.size(); i += 4) {
      // Any codes for MXFP4; for BF16 and F32 exponents near 1, so that nothing overflows.
      const uint32_t bits = format == WeightFormat::Mxfp4
                                ? random.next_u32()
                                : (random.next_u32() & 0x807f807fu) | 0x3f003f00u;
      std::memcpy(storage.data() + i, &bits, 4);
    }
    scales.assign(matrix.rows * kCols / WeightMatrix::kMxfp4Group, std::byte{120});
    matrix.data = storage.data();
    matrix.scales = scales.data();
  }
  std::vector<std::byte> storage, scales;
  WeightMatrix matrix;
};

void product(benchmark::State& state, const Kernels* kernels, WeightFormat format) {
  const Weights weights(format);
  const size_t columns = size_t(state.range(0)), stride = packed_size(kCols);
  // The work of one iteration is bounded; every iteration takes the next rows.
  const size_t rows = std::max<size_t>(64, weights.matrix.rows / (4 * columns));
  const std::vector<float> x(kCols, 0.5f);
  std::vector<float> packed(columns * stride), y(columns * rows);
  for (size_t c = 0; c < columns; ++c)
    kernels->pack_column(format, x.data(), kCols, packed.data() + c * stride);
  size_t first = 0;
  for (auto _ : state) {
    if (first + rows > weights.matrix.rows) first = 0;
    kernels->product(weights.matrix.row_range(first, rows), packed.data(), stride, columns,
                     y.data(), rows);
    benchmark::DoNotOptimize(y.data());
    first += rows;
  }
  const double done = double(state.iterations()) * double(rows);
  state.counters["bytes"] =
      benchmark::Counter(done * double(weights.matrix.row_bytes()), benchmark::Counter::kIsRate);
  state.counters["flop"] =
      benchmark::Counter(done * 2 * double(kCols * columns), benchmark::Counter::kIsRate);
}

const int registered = [] {
  constexpr struct {
    WeightFormat format;
    const char* name;
  } kFormats[] = {
      {WeightFormat::F32, "f32"}, {WeightFormat::Bf16, "bf16"}, {WeightFormat::Mxfp4, "mxfp4"}};
  for (const Kernels& kernels : kernel_variants())
    for (const auto& format : kFormats)
      benchmark::RegisterBenchmark(
          (std::string("product/") + kernels.name + "/" + format.name).c_str(), product, &kernels,
          format.format)
          ->Arg(1)
          ->Arg(4)
          ->Arg(16)
          ->Arg(64);
  return 0;
}();

}  // namespace
}  // namespace deltafin::numerics
