#include "checkpoint/inventory.h"

#include "base/check.h"

namespace deltafin::checkpoint {
namespace {

// The element type of a role in the published K3 files (K3's header listing; Kimi-Linear's is not
// known, and the difference is a few megabytes).
DType published_dtype(TensorRole role) {
  switch (role) {
    case TensorRole::QConv:
    case TensorRole::KConv:
    case TensorRole::VConv:
    case TensorRole::ALog:
    case TensorRole::DtBias:
    case TensorRole::HeadNorm:
    case TensorRole::RouterBias:
      return DType::F32;
    default:
      return DType::BF16;
  }
}

uint64_t elements_of(const TensorSpec& spec) {
  const std::optional<uint64_t> count = element_count(spec);
  CHECK(count);  // parse_config bounds every size
  return *count;
}

uint64_t bytes_of_tensor(const TensorSpec& spec) {
  return elements_of(spec) * bytes_of(published_dtype(spec.role));
}

uint64_t bytes_of_expert(const ModelContract& contract, uint32_t layer) {
  uint64_t bytes = 0;
  for (const ExpertPartSpec& part : expert_tensors(contract, layer, 0)) {
    bytes += part.rows * part.cols * bytes_of(part.is_u8 ? DType::U8 : DType::BF16);
  }
  return bytes;
}

void count_kinds(const LayerContract& layer, Inventory& inventory) {
  switch (layer.mixer) {
    case MixerKind::Kda:
      ++inventory.kda_layer_count;
      break;
    case MixerKind::Mla:
      ++inventory.mla_layer_count;
      break;
  }
  switch (layer.ffn) {
    case FfnKind::Dense:
      ++inventory.dense_layer_count;
      break;
    case FfnKind::Moe:
      ++inventory.moe_layer_count;
      break;
  }
}

void add_global(const TensorSpec& spec, const KimiConfig& kimi, Inventory& inventory) {
  const uint64_t bytes = bytes_of_tensor(spec);
  const uint64_t elements = elements_of(spec);
  inventory.parameter_count += elements;
  if (spec.role == TensorRole::Embedding) {
    inventory.embedding_bytes += bytes;
    inventory.active_parameter_count += kimi.hidden_size;
    inventory.cold_trunk_bytes += kimi.hidden_size * bytes_of(published_dtype(spec.role));
    return;
  }
  (spec.role == TensorRole::LmHead ? inventory.lm_head_bytes : inventory.trunk_bytes) += bytes;
  inventory.active_parameter_count += elements;
  inventory.cold_trunk_bytes += bytes;
}

void add_trunk(const TensorSpec& spec, Inventory& inventory) {
  const uint64_t bytes = bytes_of_tensor(spec);
  const uint64_t elements = elements_of(spec);
  inventory.parameter_count += elements;
  inventory.active_parameter_count += elements;
  inventory.trunk_bytes += bytes;
  inventory.cold_trunk_bytes += bytes;
}

void add_experts(const ModelContract& contract, uint32_t layer, Inventory& inventory) {
  const ExpertContract& experts = *contract.layers[layer].experts;
  const std::optional<uint64_t> parameters = expert_parameter_count(experts);
  CHECK(parameters);
  const uint64_t bytes = bytes_of_expert(contract, layer);
  const uint64_t used = contract.kimi.experts_per_token;
  inventory.expert_bytes = bytes;
  inventory.routed_bytes += bytes * experts.expert_count;
  inventory.parameter_count += *parameters * experts.expert_count;
  inventory.active_parameter_count += *parameters * used;
  inventory.cold_expert_bytes += bytes * used;
}

}  // namespace

Inventory take_inventory(const ModelContract& contract) {
  Inventory inventory;
  inventory.tensor_count = tensor_count(contract);
  for (const TensorSpec& spec : contract.globals) add_global(spec, contract.kimi, inventory);
  for (uint32_t i = 0; i < contract.layers.size(); ++i) {
    const LayerContract& layer = contract.layers[i];
    count_kinds(layer, inventory);
    for (const TensorSpec& spec : layer.trunk) add_trunk(spec, inventory);
    if (layer.experts) add_experts(contract, i, inventory);
  }
  return inventory;
}

}  // namespace deltafin::checkpoint
