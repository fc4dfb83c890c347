#include "memory/trunk.h"

#include "base/check.h"

namespace deltafin::memory {

using checkpoint::TensorKind;
using checkpoint::TensorRole;

const numerics::WeightMatrix& LayerWeights::matrix(TensorRole role) const {
  CHECK(entry(role).present && entry(role).kind == TensorKind::Matrix);
  return entry(role).matrix;
}

std::span<const float> LayerWeights::vector(TensorRole role) const {
  CHECK(entry(role).present && entry(role).kind == TensorKind::Vector);
  return entry(role).vector;
}

TrunkLease::~TrunkLease() {
  if (trunk_ != nullptr && trunk_->stream_ && trunk_->stream_->holds(layer_))
    trunk_->stream_->release(layer_);
}

const LayerWeights& TrunkLease::operator*() const { return trunk_->layers_[layer_]; }

void Trunk::bind(LayerWeights& weights, std::span<const MatrixPlace> places,
                 const std::byte* image) {
  for (const MatrixPlace& place : places)
    weights.entries_[size_t(place.role)].matrix.data = image + place.position;
}

Result<TrunkLease> Trunk::layer(uint32_t index, const CancelToken& cancel) {
  if (stream_ && stream_->holds(index)) {
    TRY(const std::byte* const image, stream_->lease(index, cancel));
    bind(layers_[index], places_[index - counters_.resident_layers], image);
  } else if (stream_) {
    stream_->expect_first();
  }
  return TrunkLease(*this, index);
}

TrunkCounters Trunk::snapshot() const {
  TrunkCounters counters = counters_;
  if (stream_) counters.stream = stream_->counters();
  return counters;
}

}  // namespace deltafin::memory
