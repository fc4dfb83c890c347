// One expert over some rows: down(act(gate x, up x)), split over the team by output rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/thread_team.h"
#include "memory/expert_store.h"
#include "numerics/kernels.h"

namespace deltafin::memory {

struct ExpertWeights {
  numerics::WeightMatrix gate;  // w1 [inner, input]
  numerics::WeightMatrix up;    // w3 [inner, input]
  numerics::WeightMatrix down;  // w2 [input, inner]
};

class ExpertCompute {
 public:
  ExpertCompute(ThreadTeam& team, const numerics::Kernels& kernels, const ExpertFunction& function)
      : team_(team), kernels_(kernels), function_(function) {}

  // outputs[edge, input] for every edge index in `edges` of `batch`. Cancelled is noticed between
  // tiles of kTileRows rows.
  Status run(const ExpertWeights& weights, const ExpertBatch& batch,
             std::span<const uint32_t> edges, float* outputs, const CancelToken& cancel);

 private:
  // Bounds the scratch memory and the time between two looks at the cancel token; the weights of
  // one expert stay in cache from tile to tile.
  static constexpr size_t kTileRows = 64;
  static constexpr size_t kBlockRows = 64;  // weight rows a task takes

  void run_tile(const ExpertWeights& weights, const ExpertBatch& batch,
                std::span<const uint32_t> edges, float* outputs);

  ThreadTeam& team_;
  const numerics::Kernels& kernels_;
  ExpertFunction function_;
  std::vector<float> packed_gate_, packed_up_, gate_, up_, packed_inner_, down_;
};

}  // namespace deltafin::memory
