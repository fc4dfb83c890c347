#include "workload.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/machine.h"
#include "base/philox.h"

namespace deltafin::bench {

using numerics::WeightFormat;
using numerics::WeightMatrix;

namespace {

io::Arena map(size_t bytes) {
  auto arena = io::Arena::map(bytes);
  CHECK(arena.has_value());
  return std::move(*arena);
}

// Any codes for MXFP4; for BF16 and F32 any sign and mantissa, and the exponent of [0.5, 1).
uint32_t sane_weights(WeightFormat format, uint32_t bits) {
  switch (format) {
    case WeightFormat::F32:
      return (bits & 0x807fffffu) | 0x3f000000u;
    case WeightFormat::Bf16:
      return (bits & 0x807f807fu) | 0x3f003f00u;
    case WeightFormat::Mxfp4:
      return bits;
  }
  return 0;
}

size_t scale_bytes(const WeightMatrix& matrix) {
  return matrix.format == WeightFormat::Mxfp4
             ? matrix.rows * (matrix.cols / WeightMatrix::kMxfp4Group)
             : 0;
}

}  // namespace

size_t weight_bytes(const WeightMatrix& matrix) {
  return matrix.rows * matrix.row_bytes() + scale_bytes(matrix);
}

WeightPool::WeightPool(WeightFormat format, std::span<const Shape> shapes) {
  size_t bytes = 0;
  for (size_t i = 0; bytes < kBytes; ++i) {
    const Shape shape = shapes[i % shapes.size()];
    WeightMatrix& matrix = matrices_.emplace_back();
    matrix.format = format;
    matrix.rows = shape.rows;
    matrix.cols = shape.cols;
    bytes += weight_bytes(matrix);
  }
  memory_ = map(bytes);
  std::byte* at = memory_.bytes().data();
  Random random(1);
  for (WeightMatrix& matrix : matrices_) {
    matrix.data = at;
    for (const std::byte* end = at + matrix.rows * matrix.row_bytes(); at < end; at += 4) {
      const uint32_t bits = sane_weights(format, random.next_u32());
      std::memcpy(at, &bits, sizeof bits);
    }
    if (format != WeightFormat::Mxfp4) continue;
    matrix.scales = at;
    for (const std::byte* end = at + scale_bytes(matrix); at < end; ++at)
      *at = std::byte(118 + random.below(7));
  }
}

Floats activations(size_t count) {
  Floats values(count);
  Random random(2);
  for (size_t i = 0; i < count; ++i) values.data()[i] = 2 * random.uniform() - 1;
  return values;
}

Columns::Columns(const numerics::Kernels& kernels, const WeightMatrix& weights, size_t column_count)
    : count(column_count),
      stride(numerics::packed_size(weights.cols)),
      packed(stride * count),
      y(weights.rows * count) {
  const Floats x = activations(weights.cols * count);
  for (size_t c = 0; c < count; ++c)
    kernels.pack_column(weights.format, x.data() + c * weights.cols, weights.cols,
                        packed.data() + c * stride);
}

void multiply(ThreadTeam& team, Product product, const WeightMatrix& weights,
              const Columns& columns) {
  constexpr size_t kBlockRows = 64;
  team.parallel_for((weights.rows + kBlockRows - 1) / kBlockRows, [&](size_t block) {
    const size_t first = block * kBlockRows, rows = std::min(kBlockRows, weights.rows - first);
    product(weights.row_range(first, rows), columns.packed.data(), columns.stride, columns.count,
            columns.y.data() + first, weights.rows);
  });
}

std::vector<size_t> core_counts() {
  const size_t all = usable_core_count();
  return all == 1 ? std::vector<size_t>{1} : std::vector<size_t>{1, all};
}

ThreadTeam& team_of(size_t thread_count) {
  static std::map<size_t, ThreadTeam> teams;
  return teams.try_emplace(thread_count, thread_count).first->second;
}

}  // namespace deltafin::bench
