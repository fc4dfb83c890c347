// The trunk: every weight but the routed experts, in the checkpoint's own bytes.
//
// Vectors, the output head and the first layers stay in memory; layers behind them, where they do
// not fit, are read again for every pass. The embedding is read row by row.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "checkpoint/checkpoint.h"
#include "io/arena.h"
#include "io/reader.h"
#include "memory/embedding_table.h"
#include "memory/layer_stream.h"
#include "numerics/weights.h"

namespace deltafin::memory {

// The weights of one layer (or of the model's head and tail), by role. A role that the contract
// does not name for this layer must not be asked for, except through has().
class LayerWeights {
 public:
  bool has(checkpoint::TensorRole role) const { return entry(role).present; }
  // Only while the layer is leased.
  const numerics::WeightMatrix& matrix(checkpoint::TensorRole role) const;
  std::span<const float> vector(checkpoint::TensorRole role) const;

 private:
  friend class Trunk;
  friend class TrunkLoader;
  struct Entry {
    bool present = false;
    checkpoint::TensorKind kind = checkpoint::TensorKind::Matrix;
    numerics::WeightMatrix matrix;
    std::span<const float> vector;
  };
  const Entry& entry(checkpoint::TensorRole role) const { return entries_[size_t(role)]; }
  std::array<Entry, checkpoint::kTensorRoleCount> entries_;
};

class Trunk;

// Keeps a layer's weights in place while it lives. The trunk outlives it.
class TrunkLease {
 public:
  TrunkLease(TrunkLease&& other) noexcept
      : trunk_(std::exchange(other.trunk_, nullptr)), layer_(other.layer_) {}
  TrunkLease& operator=(TrunkLease&&) = delete;
  ~TrunkLease();
  const LayerWeights& operator*() const;
  const LayerWeights* operator->() const { return &**this; }

 private:
  friend class Trunk;
  TrunkLease(Trunk& trunk, uint32_t layer) : trunk_(&trunk), layer_(layer) {}

  Trunk* trunk_;
  uint32_t layer_;
};

struct TrunkProgress {
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
};

struct TrunkCounters {
  uint64_t resident_bytes = 0;   // of weights that stay, as in their files
  uint32_t resident_layers = 0;  // the first so many
  uint32_t streamed_layers = 0;  // those behind them
  uint64_t streamed_bytes = 0;   // that one pass through them reads
  StreamCounters stream;
};

// A gap between two matrices of a layer that is read with them rather than around: a norm or two.
inline constexpr uint64_t kTrunkGapBytes = 16 << 10;
// Vectors, as f32, start at cache-line borders: every so many floats.
inline constexpr uint64_t kTrunkVectorAlignment = 16;

struct TrunkOptions {
  // The first so many layers stay in memory, as far as the model has that many.
  uint32_t resident_layers = ~uint32_t{0};
};

// Where a layer's matrices go in memory, for whoever plans: `bytes` is what it takes.
ImageLayout lay_out_layer(const checkpoint::Checkpoint& checkpoint, uint32_t layer);
// Of the matrices that belong to no layer: the output head, or, where there is no head of its own,
// the embedding that serves as one.
ImageLayout lay_out_globals(const checkpoint::Checkpoint& checkpoint, bool own_head);

// Not thread-safe: the engine thread owns it.
class Trunk {
 public:
  // Reads every tensor that stays; not an optional output head that is a copy of the embedding.
  // `progress` (may be empty) is called on the calling thread. The references must outlive the
  // trunk. Errors: OverBudget when the memory cannot be mapped; Io naming file and offset;
  // Cancelled.
  static Result<std::unique_ptr<Trunk>> load(
      const checkpoint::Checkpoint& checkpoint, io::Reader& reader, ThreadTeam& team,
      const Clock& clock, const TrunkOptions& options,
      const std::function<void(const TrunkProgress&)>& progress, const CancelToken& cancel);

  Trunk(const Trunk&) = delete;
  Trunk& operator=(const Trunk&) = delete;

  const LayerWeights& globals() const { return globals_; }
  // Of a layer that may not be in memory: only has() and vector().
  const LayerWeights& vectors(uint32_t layer) const { return layers_[layer]; }
  // Waits until the layer is in memory, and has the next one read meanwhile. One lease of a
  // streamed layer at a time. Errors: Io naming layer, file and offset; Cancelled.
  Result<TrunkLease> layer(uint32_t index, const CancelToken& cancel);
  // The layer's weights, for a glance until the next call, if they stay in memory.
  const LayerWeights* find_resident(uint32_t index) const {
    return index < counters_.resident_layers ? &layers_[index] : nullptr;
  }

  EmbeddingTable& embedding() { return *embedding_; }

  TrunkCounters snapshot() const;

 private:
  friend class TrunkLease;
  friend class TrunkLoader;
  Trunk() = default;

  // The matrices of a layer, and where in its image they are.
  struct MatrixPlace {
    checkpoint::TensorRole role = checkpoint::TensorRole::Embedding;
    uint64_t position = 0;
  };
  static void bind(LayerWeights& weights, std::span<const MatrixPlace> places,
                   const std::byte* image);

  io::Arena stored_;            // the images that stay
  std::vector<float> widened_;  // vectors as f32
  LayerWeights globals_;
  std::vector<LayerWeights> layers_;
  std::vector<std::vector<MatrixPlace>> places_;  // of streamed layers
  std::optional<LayerStream> stream_;
  std::optional<EmbeddingTable> embedding_;
  TrunkCounters counters_;
};

}  // namespace deltafin::memory
