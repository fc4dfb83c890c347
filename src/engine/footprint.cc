#include "engine/footprint.h"

#include <algorithm>

#include "model/family.h"
#include "model/gated_delta_net.h"
#include "model/grouped_query_attention.h"
#include "model/kda.h"
#include "model/mla.h"
#include "model/moe.h"

namespace deltafin::engine {

using checkpoint::KimiConfig;
using checkpoint::ModelContract;
using checkpoint::QwenConfig;
using memory::ModelSizes;

namespace {

// Of the running vector, and of what a layer holds beside its own scratch, in hidden sizes.
constexpr uint64_t kVectorsOfARow = 6;

uint64_t floats_per_row(const KimiConfig& config, uint64_t layer_count) {
  const model::MoeShape moe{
      .router = {.top_k = config.experts_per_token},
      .expert_count = config.expert_count,
      .hidden_size = config.hidden_size,
      .expert_width = config.latent_size.value_or(config.hidden_size),
      .shared_width = config.shared_expert_count * config.moe_intermediate_size,
      .function = {}};
  const uint64_t blocks =
      config.attn_res_block_size ? (layer_count - 1) / *config.attn_res_block_size + 1 : 0;
  const uint64_t layer =
      std::max({model::kda_workspace_per_row(config), model::mla_workspace_per_row(config),
                model::moe_workspace_per_row(moe), 3 * uint64_t{config.dense_intermediate_size}});
  return (blocks + kVectorsOfARow) * config.hidden_size + layer;
}

uint64_t floats_per_row(const QwenConfig& config) {
  const model::MoeShape moe{.router = {.top_k = config.experts_per_token},
                            .expert_count = config.expert_count,
                            .hidden_size = config.hidden_size,
                            .expert_width = config.hidden_size,
                            .shared_width = config.shared_intermediate_size,
                            .function = {}};
  const uint64_t layer =
      std::max({model::gated_delta_net_workspace_per_row(config),
                model::GroupedQueryAttention(config).workspace_per_row(),
                model::moe_workspace_per_row(moe), 3 * uint64_t{config.dense_intermediate_size}});
  return kVectorsOfARow * config.hidden_size + layer;
}

ModelSizes completed(ModelSizes sizes, const ModelContract& contract) {
  const state::Layout layout = model::state_layout(contract);
  sizes.state_fixed_bytes = layout.fixed_bytes();
  sizes.state_bytes_per_position = layout.bytes_per_position();
  sizes.activation_bytes_per_row = activation_bytes_per_row(contract);
  return sizes;
}

}  // namespace

uint64_t activation_bytes_per_row(const ModelContract& contract) {
  const uint64_t floats = contract.qwen() != nullptr
                              ? floats_per_row(*contract.qwen())
                              : floats_per_row(*contract.kimi(), contract.layers.size());
  return floats * sizeof(float);
}

ModelSizes footprint_of(const ModelContract& contract) {
  return completed(memory::sizes_of(contract), contract);
}

ModelSizes footprint_of(const checkpoint::Checkpoint& checkpoint) {
  return completed(memory::sizes_of(checkpoint), checkpoint.contract());
}

}  // namespace deltafin::engine
