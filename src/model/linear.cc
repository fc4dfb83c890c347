#include "model/linear.h"

#include <algorithm>

namespace deltafin::model {

namespace {

// Weight rows a task takes: enough bytes to amortise the hand-out (64 rows of K3 are 0.9 MB), few
// enough that small matrices still spread over the team.
constexpr size_t kBlockRows = 64;

size_t block_count(const numerics::WeightMatrix& weights) {
  return (weights.rows + kBlockRows - 1) / kBlockRows;
}

}  // namespace

Rows PackedRows::packed(numerics::WeightFormat format) {
  Rows& packed = packed_[size_t(format)];
  if (packed.data == nullptr) {
    packed = context_.workspace.take(rows_.count, numerics::packed_size(rows_.width));
    context_.team.parallel_for(rows_.count, [&](size_t i) {
      context_.kernels.pack_column(format, rows_.row(i), rows_.width, packed.row(i));
    });
  }
  return packed;
}

void linear(Context& context, std::span<const Projection> projections, PackedRows& rows) {
  size_t blocks = 0;
  for (const Projection& projection : projections) {
    CHECK(projection.weights.cols == rows.rows().width);
    CHECK(projection.weights.rows == projection.out.width);
    CHECK(projection.out.count == rows.rows().count);
    rows.packed(projection.weights.format);
    blocks += block_count(projection.weights);
  }
  context.team.parallel_for(blocks, [&](size_t block) {
    if (context.cancel.cancelled()) return;
    const Projection* projection = projections.data();
    for (; block >= block_count(projection->weights); ++projection)
      block -= block_count(projection->weights);
    const numerics::WeightMatrix& weights = projection->weights;
    const Rows packed = rows.packed(weights.format), out = projection->out;
    const size_t first = block * kBlockRows, count = std::min(kBlockRows, weights.rows - first);
    context.kernels.product(weights.row_range(first, count), packed.data, packed.stride,
                            packed.count, out.data + first, out.stride);
  });
}

void linear(Context& context, const numerics::WeightMatrix& weights, PackedRows& rows, Rows out) {
  const Projection projection{weights, out};
  linear(context, std::span(&projection, 1), rows);
}

void rms_norm(Context& context, Rows rows, const Norm& norm, Rows out) {
  CHECK(norm.weight.size() == rows.width && out.width == rows.width);
  context.team.parallel_for(rows.count, [&](size_t i) {
    context.kernels.rms_norm(rows.row(i), norm.weight.data(), norm.kind, norm.epsilon, out.row(i),
                             rows.width);
  });
}

void add_rows(Context& context, Rows a, Rows b, Rows out) {
  context.team.parallel_for(
      a.count, [&](size_t i) { context.kernels.add(a.row(i), b.row(i), out.row(i), a.width); });
}

}  // namespace deltafin::model
