// The trunk: every weight but the routed experts, loaded once into memory in the checkpoint's own
// bytes.
//
// Layers are handed out as leases, so that a trunk larger than memory can later be streamed behind
// the same interface.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "io/arena.h"
#include "io/reader.h"
#include "numerics/weights.h"

namespace deltafin::memory {

// The weights of one layer (or of the model's head and tail), by role. A role that the contract
// does not name for this layer must not be asked for, except through has().
class LayerWeights {
 public:
  bool has(checkpoint::TensorRole role) const { return entry(role).present; }
  const numerics::WeightMatrix& matrix(checkpoint::TensorRole role) const;
  std::span<const float> vector(checkpoint::TensorRole role) const;

 private:
  friend class Trunk;
  struct Entry {
    bool present = false;
    checkpoint::TensorKind kind = checkpoint::TensorKind::Matrix;
    numerics::WeightMatrix matrix;
    std::span<const float> vector;
  };
  const Entry& entry(checkpoint::TensorRole role) const { return entries_[size_t(role)]; }
  std::array<Entry, checkpoint::kTensorRoleCount> entries_;
};

// Keeps a layer's weights in place while it lives.
class TrunkLease {
 public:
  explicit TrunkLease(const LayerWeights& weights) : weights_(&weights) {}
  const LayerWeights& operator*() const { return *weights_; }
  const LayerWeights* operator->() const { return weights_; }

 private:
  const LayerWeights* weights_;
};

struct TrunkProgress {
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
};

class Trunk {
 public:
  // Reads every trunk tensor; not an optional output head that is a copy of the embedding.
  // `progress` (may be empty) is called on the calling thread. Errors: OverBudget when the memory
  // cannot be mapped; Io naming file and offset; Cancelled.
  static Result<Trunk> load(const checkpoint::Checkpoint& checkpoint, io::Reader& reader,
                            const std::function<void(const TrunkProgress&)>& progress,
                            const CancelToken& cancel);

  const LayerWeights& globals() const { return *globals_; }
  // Errors (once layers are streamed): Io. Waits until the layer is in memory.
  Result<TrunkLease> layer(uint32_t index) const { return TrunkLease(layers_[index]); }

  uint64_t bytes() const { return bytes_; }

 private:
  Trunk() = default;
  io::Arena stored_;            // matrices and vectors as they lie in the files
  std::vector<float> widened_;  // vectors as f32
  std::unique_ptr<LayerWeights> globals_;
  std::vector<LayerWeights> layers_;
  uint64_t bytes_ = 0;
};

}  // namespace deltafin::memory
