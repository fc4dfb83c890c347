#include "model/linear.h"

#include <algorithm>

namespace deltafin::model {

namespace {

// Weight rows a task takes: enough bytes to amortise the hand-out (64 rows of K3 are 0.9 MB), few
// enough that small matrices still spread over the team.
constexpr size_t kBlockRows = 64;

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

void linear(Context& context, const numerics::WeightMatrix& weights, PackedRows& rows, Rows out) {
  CHECK(weights.cols == rows.rows().width);
  CHECK(weights.rows == out.width && out.count == rows.rows().count);
  const Rows packed = rows.packed(weights.format);
  context.team.parallel_for((weights.rows + kBlockRows - 1) / kBlockRows, [&](size_t block) {
    if (context.cancel.cancelled()) return;
    const size_t first = block * kBlockRows, count = std::min(kBlockRows, weights.rows - first);
    context.kernels.product(weights.row_range(first, count), packed.data, packed.stride,
                            packed.count, out.data + first, out.stride);
  });
}

Rows linear(Context& context, const numerics::WeightMatrix& weights, PackedRows& rows) {
  const Rows out = context.workspace.take(rows.rows().count, weights.rows);
  linear(context, weights, rows, out);
  return out;
}

Rows linear(Context& context, const numerics::WeightMatrix& weights, Rows rows) {
  PackedRows packed(context, rows);
  return linear(context, weights, packed);
}

void rms_norm(Context& context, Rows rows, std::span<const float> weight, float epsilon, Rows out) {
  CHECK(weight.size() == rows.width && out.width == rows.width);
  context.team.parallel_for(rows.count, [&](size_t i) {
    context.kernels.rms_norm(rows.row(i), weight.data(), numerics::NormWeight::Plain, epsilon,
                             out.row(i), rows.width);
  });
}

void add_rows(Context& context, Rows a, Rows b, Rows out) {
  context.team.parallel_for(
      a.count, [&](size_t i) { context.kernels.add(a.row(i), b.row(i), out.row(i), a.width); });
}

}  // namespace deltafin::model
