#include "engine/footprint.h"

#include "model/family.h"

namespace deltafin::engine {

using checkpoint::ModelContract;
using memory::ModelSizes;

namespace {

ModelSizes completed(ModelSizes sizes, const ModelContract& contract) {
  const state::Layout layout = model::state_layout(contract);
  sizes.state_fixed_bytes = layout.fixed_bytes();
  sizes.state_bytes_per_position = layout.bytes_per_position();
  sizes.activation_bytes_per_row = model::activation_bytes_per_row(contract);
  return sizes;
}

}  // namespace

ModelSizes footprint_of(const ModelContract& contract) {
  return completed(memory::sizes_of(contract), contract);
}

ModelSizes footprint_of(const checkpoint::Checkpoint& checkpoint) {
  return completed(memory::sizes_of(checkpoint), checkpoint.contract());
}

}  // namespace deltafin::engine
