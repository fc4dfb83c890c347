// How big a model is, from its contract alone: what `inspect` prints before any shard is there.
#pragma once

#include <array>
#include <cstdint>

#include "checkpoint/contract.h"

namespace deltafin::checkpoint {

// Bytes are those of the published files: weights BF16, packed experts as packed, and F32 for the
// few vectors that are published so (decay and head norms, and others in K3). A checkpoint on disk
// may keep any of its plain tensors in the other of F32 and BF16; Survey::found_bytes counts those.
struct Inventory {
  std::array<uint32_t, kMixerKindCount> mixer_layers{};  // by MixerKind
  std::array<uint32_t, kFfnKindCount> ffn_layers{};      // by FfnKind

  uint32_t layers_of(MixerKind kind) const { return mixer_layers[size_t(kind)]; }
  uint32_t layers_of(FfnKind kind) const { return ffn_layers[size_t(kind)]; }

  uint64_t parameter_count = 0;
  // Those that take part in one token: the whole trunk, lm_head, the routed experts of one token,
  // and one row of the embedding (all of it where it is the output head).
  uint64_t active_parameter_count = 0;

  uint64_t tensor_count = 0;     // of the published files
  uint64_t embedding_bytes = 0;  // a token reads one row of it
  uint64_t lm_head_bytes = 0;
  uint64_t trunk_bytes = 0;   // layers and final norms, without embedding, lm_head, routed experts
  uint64_t expert_bytes = 0;  // one routed expert; 0 in a model without
  uint64_t routed_bytes = 0;  // all routed experts

  // What one token reads when nothing is in memory: its routed experts ...
  uint64_t cold_expert_bytes = 0;
  // ... and, unless the trunk is resident, the trunk, the output head and one row of the embedding.
  uint64_t cold_trunk_bytes = 0;

  uint64_t total_bytes() const {
    return embedding_bytes + lm_head_bytes + trunk_bytes + routed_bytes;
  }
};

// `contract` comes from parse_config, which has proven that no sum here can overflow.
Inventory take_inventory(const ModelContract& contract);

}  // namespace deltafin::checkpoint
