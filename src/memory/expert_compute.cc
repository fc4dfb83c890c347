#include "memory/expert_compute.h"

#include <algorithm>
#include <cstring>

namespace deltafin::memory {

using numerics::packed_size;
using numerics::WeightMatrix;

void ExpertFunction::activate(const numerics::Kernels& kernels, float* gate, const float* up,
                              size_t n) const {
  if (activation == checkpoint::Activation::SwiGlu) {
    kernels.swiglu(gate, up, gate, n);
  } else {
    const float* linear = situ_linear_beta ? &*situ_linear_beta : nullptr;
    kernels.situ_glu(gate, up, situ_beta, linear, gate, n);
  }
}

Status ExpertCompute::run(std::span<const ExpertJob> jobs, const ExpertBatch& batch, float* outputs,
                          const CancelToken& cancel) {
  size_t columns = 0;
  const auto flush = [&]() -> Status {
    if (columns == 0) return {};
    TRY_STATUS(cancel.check());
    run_pieces(batch, outputs);
    pieces_.clear();
    columns = 0;
    return {};
  };
  pieces_.clear();
  for (const ExpertJob& job : jobs) {
    for (size_t first = 0; first < job.edges.size();) {
      const size_t count = std::min(kColumnsAtOnce - columns, job.edges.size() - first);
      pieces_.push_back({&job.weights, job.edges.subspan(first, count), columns});
      columns += count;
      first += count;
      if (columns == kColumnsAtOnce) TRY_STATUS(flush());
    }
  }
  return flush();
}

void ExpertCompute::run_pieces(const ExpertBatch& batch, float* outputs) {
  // All experts of a layer have the same shape, but each its own formats.
  const auto formats_differ = [](const Piece& piece) {
    return piece.weights->gate.format != piece.weights->up.format;
  };
  const WeightMatrix& any_gate = pieces_.front().weights->gate;
  const size_t input = any_gate.cols, inner = any_gate.rows;
  const size_t columns = pieces_.back().column + pieces_.back().edges.size();
  input_stride_ = packed_size(input);
  inner_stride_ = packed_size(inner);
  packed_gate_.at_least(columns * input_stride_);
  if (std::ranges::any_of(pieces_, formats_differ)) packed_up_.at_least(columns * input_stride_);
  gate_.at_least(columns * inner);
  up_.at_least(columns * inner);
  packed_inner_.at_least(columns * inner_stride_);
  down_.at_least(columns * input);

  team_.parallel_for(pieces_.size(), [&](size_t index) {
    const Piece& piece = pieces_[index];
    const WeightMatrix &gate = piece.weights->gate, &up = piece.weights->up;
    for (size_t i = 0; i < piece.edges.size(); ++i) {
      const float* row = batch.rows + batch.edges[piece.edges[i]].row * input;
      const size_t at = (piece.column + i) * input_stride_;
      kernels_.pack_column(gate.format, row, input, packed_gate_.data() + at);
      if (formats_differ(piece))
        kernels_.pack_column(up.format, row, input, packed_up_.data() + at);
    }
  });

  const size_t inner_blocks = (inner + kInnerRows - 1) / kInnerRows;
  team_.parallel_for(pieces_.size() * inner_blocks, [&](size_t task) {
    const size_t first = task % inner_blocks * kInnerRows;
    compute_inner(pieces_[task / inner_blocks], first, std::min(kInnerRows, inner - first));
  });

  const size_t output_blocks = (input + kOutputRows - 1) / kOutputRows;
  team_.parallel_for(pieces_.size() * output_blocks, [&](size_t task) {
    const size_t first = task % output_blocks * kOutputRows;
    compute_output(pieces_[task / output_blocks], first, std::min(kOutputRows, input - first),
                   outputs);
  });
}

// Rows [first, first + rows) of act(gate x, up x), packed for the down matrix.
void ExpertCompute::compute_inner(const Piece& piece, size_t first, size_t rows) {
  const ExpertWeights& weights = *piece.weights;
  const size_t inner = weights.gate.rows, count = piece.edges.size();
  const Floats& packed_up = weights.gate.format == weights.up.format ? packed_gate_ : packed_up_;
  float* gate = gate_.data() + piece.column * inner + first;
  float* up = up_.data() + piece.column * inner + first;
  kernels_.product(weights.gate.row_range(first, rows),
                   packed_gate_.data() + piece.column * input_stride_, input_stride_, count, gate,
                   inner);
  kernels_.product(weights.up.row_range(first, rows),
                   packed_up.data() + piece.column * input_stride_, input_stride_, count, up,
                   inner);
  for (size_t i = 0; i < count; ++i, gate += inner, up += inner) {
    function_.activate(kernels_, gate, up, rows);
    kernels_.pack_column(weights.down.format, gate, rows,
                         packed_inner_.data() + (piece.column + i) * inner_stride_ + first);
  }
}

void ExpertCompute::compute_output(const Piece& piece, size_t first, size_t rows, float* outputs) {
  const WeightMatrix& matrix = piece.weights->down;
  float* down = down_.data() + piece.column * matrix.rows + first;
  kernels_.product(matrix.row_range(first, rows),
                   packed_inner_.data() + piece.column * inner_stride_, inner_stride_,
                   piece.edges.size(), down, matrix.rows);
  for (const uint32_t edge : piece.edges) {
    std::memcpy(outputs + edge * matrix.rows + first, down, rows * sizeof(float));
    down += matrix.rows;
  }
}

}  // namespace deltafin::memory
