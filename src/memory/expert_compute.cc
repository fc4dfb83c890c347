#include "memory/expert_compute.h"

#include <algorithm>
#include <cstring>

namespace deltafin::memory {

using numerics::packed_size;
using numerics::WeightMatrix;

namespace {

float* grow(std::vector<float>& buffer, size_t count) {
  if (buffer.size() < count) buffer.resize(count);
  return buffer.data();
}

}  // namespace

Status ExpertCompute::run(const ExpertWeights& weights, const ExpertBatch& batch,
                          std::span<const uint32_t> edges, float* outputs,
                          const CancelToken& cancel) {
  for (size_t first = 0; first < edges.size(); first += kTileRows) {
    TRY_STATUS(cancel.check());
    run_tile(weights, batch, edges.subspan(first, std::min(kTileRows, edges.size() - first)),
             outputs);
  }
  return {};
}

void ExpertCompute::run_tile(const ExpertWeights& weights, const ExpertBatch& batch,
                             std::span<const uint32_t> edges, float* outputs) {
  const size_t count = edges.size();
  const size_t input = weights.gate.cols, inner = weights.gate.rows;
  const size_t input_stride = packed_size(input), inner_stride = packed_size(inner);
  const bool one_format = weights.gate.format == weights.up.format;
  float* packed_gate = grow(packed_gate_, count * input_stride);
  float* packed_up = one_format ? packed_gate : grow(packed_up_, count * input_stride);
  float* gate = grow(gate_, count * inner);
  float* up = grow(up_, count * inner);
  float* packed_inner = grow(packed_inner_, count * inner_stride);
  float* down = grow(down_, count * input);

  const auto pack_inputs = [&](size_t column) {
    const float* row = batch.rows + batch.edges[edges[column]].row * input;
    kernels_.pack_column(weights.gate.format, row, input, packed_gate + column * input_stride);
    if (!one_format)
      kernels_.pack_column(weights.up.format, row, input, packed_up + column * input_stride);
  };
  team_.parallel_for(count, pack_inputs);

  team_.parallel_for((inner + kBlockRows - 1) / kBlockRows, [&](size_t block) {
    const size_t first = block * kBlockRows, rows = std::min(kBlockRows, inner - first);
    kernels_.product(weights.gate.row_range(first, rows), packed_gate, input_stride, count,
                     gate + first, inner);
    kernels_.product(weights.up.row_range(first, rows), packed_up, input_stride, count, up + first,
                     inner);
    for (size_t column = 0; column < count; ++column) {
      float* g = gate + column * inner + first;
      const float* u = up + column * inner + first;
      if (function_.activation == checkpoint::Activation::SwiGlu) {
        kernels_.swiglu(g, u, g, rows);
      } else {
        const float* linear = function_.situ_linear_beta ? &*function_.situ_linear_beta : nullptr;
        kernels_.situ_glu(g, u, function_.situ_beta, linear, g, rows);
      }
    }
  });

  team_.parallel_for(count, [&](size_t column) {
    kernels_.pack_column(weights.down.format, gate + column * inner, inner,
                         packed_inner + column * inner_stride);
  });

  team_.parallel_for((input + kBlockRows - 1) / kBlockRows, [&](size_t block) {
    const size_t first = block * kBlockRows, rows = std::min(kBlockRows, input - first);
    kernels_.product(weights.down.row_range(first, rows), packed_inner, inner_stride, count,
                     down + first, input);
    for (size_t column = 0; column < count; ++column)
      std::memcpy(outputs + edges[column] * input + first, down + column * input + first,
                  rows * sizeof(float));
  });
}

}  // namespace deltafin::memory
