// What a model takes in memory and reads per token, as plain numbers: what the plan and the
// forecast calculate with.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/contract.h"

namespace deltafin::memory {

struct ModelSizes {
  // The process without weights, state and activations: program, tokenizer, tables of tensors,
  // scratch of experts, logits.
  uint64_t overhead_bytes = 0;
  // Of the trunk, what stays under every plan: the output head, and all vectors as f32.
  uint64_t trunk_fixed_bytes = 0;
  // The matrices of each layer without its routed experts.
  std::vector<uint64_t> trunk_layer_bytes;
  // What computing a token reads of the trunk, as it is in the files: all but the embedding.
  uint64_t trunk_bytes_of_a_token = 0;

  std::vector<uint32_t> experts_of_layers;  // of each layer that has some
  uint64_t expert_count = 0;                // of all layers
  uint32_t experts_per_token = 0;           // in each of these layers
  uint64_t expert_bytes = 0;                // one, as it is read
  uint64_t expert_slot_bytes = 0;           // one, as it lies in the cache

  uint64_t active_parameters = 0;  // weights that one token is multiplied with

  // Memory knows neither layers nor state: whoever asks for a plan fills these in.
  uint64_t state_fixed_bytes = 0;         // a sequence's, once
  uint64_t state_bytes_per_position = 0;  // and for each of its tokens
  uint64_t activation_bytes_per_row = 0;  // of a prefill pass

  uint64_t trunk_bytes() const {
    uint64_t bytes = trunk_fixed_bytes;
    for (const uint64_t layer : trunk_layer_bytes) bytes += layer;
    return bytes;
  }
  uint64_t cold_bytes_of_a_token() const {
    return experts_of_layers.size() * experts_per_token * expert_bytes;
  }
};

// From config.json alone. Sizes are those of the published files, and experts and layers are taken
// to lie in them as unfavourably as they can: a checkpoint takes no more, unless it keeps plain
// weights in F32.
ModelSizes sizes_of(const checkpoint::ModelContract& contract);

// From the headers of the shards: exact.
ModelSizes sizes_of(const checkpoint::Checkpoint& checkpoint);

}  // namespace deltafin::memory
