// Experts over rows: down(act(gate x, up x)), split over the team by output rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/floats.h"
#include "base/thread_team.h"
#include "memory/expert_store.h"
#include "numerics/kernels.h"

namespace deltafin::memory {

struct ExpertWeights {
  numerics::WeightMatrix gate;  // w1 [inner, input]
  numerics::WeightMatrix up;    // w3 [inner, input]
  numerics::WeightMatrix down;  // w2 [input, inner]
};

// One expert and the edges of a batch that go through it.
struct ExpertJob {
  ExpertWeights weights;
  std::span<const uint32_t> edges;
};

class ExpertCompute {
 public:
  ExpertCompute(ThreadTeam& team, const numerics::Kernels& kernels, const ExpertFunction& function)
      : team_(team), kernels_(kernels), function_(function) {}

  // outputs[edge, input] for every edge of every job. Jobs of one layer have the same shapes.
  // Several at once are faster than one by one: they share the regions of the team, and in decode
  // an expert alone is too little work for one. Cancelled is noticed between kColumnsAtOnce edges.
  Status run(std::span<const ExpertJob> jobs, const ExpertBatch& batch, float* outputs,
             const CancelToken& cancel);

 private:
  // Bounds the scratch memory and the time between two looks at the cancel token; the weights of
  // one expert stay in cache from piece to piece.
  static constexpr size_t kColumnsAtOnce = 64;
  // Weight rows a task takes. The inner ones are a multiple of every block of packed columns, so a
  // task packs what it has computed.
  static constexpr size_t kInnerRows = 128, kOutputRows = 128;

  // Some edges of one job; its columns are [column, column + edges.size()) of the scratch arrays.
  struct Piece {
    const ExpertWeights* weights;
    std::span<const uint32_t> edges;
    size_t column;
  };

  void run_pieces(const ExpertBatch& batch, float* outputs);
  void compute_inner(const Piece& piece, size_t first, size_t rows);
  void compute_output(const Piece& piece, size_t first, size_t rows, float* outputs);

  ThreadTeam& team_;
  const numerics::Kernels& kernels_;
  ExpertFunction function_;

  // Of the pieces at hand.
  std::vector<Piece> pieces_;
  size_t input_stride_ = 0, inner_stride_ = 0;
  Floats packed_gate_, packed_up_;  // [column, input_stride]
  Floats gate_, up_;                // [column, inner]
  Floats packed_inner_;             // [column, inner_stride]
  Floats down_;                     // [column, input]
};

}  // namespace deltafin::memory
