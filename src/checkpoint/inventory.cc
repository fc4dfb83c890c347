#include "checkpoint/inventory.h"

#include "base/check.h"

namespace deltafin::checkpoint {
namespace {

uint64_t elements_of(const TensorSpec& spec) {
  const std::optional<uint64_t> count = element_count(spec);
  CHECK(count);  // parse_config bounds every size
  return *count;
}

uint64_t bytes_of_tensor(const TensorSpec& spec) {
  return elements_of(spec) * bytes_of(spec.published);
}

uint64_t bytes_of_expert(const ModelContract& contract, uint32_t layer) {
  uint64_t bytes = 0;
  const ExpertContract& experts = *contract.layers[layer].experts;
  const uint64_t element =
      bytes_of(experts.format == ExpertFormat::Mxfp4 ? DType::U8 : DType::BF16);
  const auto add = [&](ExpertPart part) {
    const PartShape shape = part_shape(experts, part);
    bytes += shape.rows * shape.cols * element;
  };
  for (const ExpertTensorForm& form : expert_tensor_forms(experts)) {
    add(form.part);
    if (form.second) add(*form.second);
  }
  return bytes;
}

// A tied embedding works as output head too. The copy of it that published files hold besides is
// bytes, but no parameters of its own.
void add_global(const TensorSpec& spec, const ModelContract& contract, Inventory& inventory) {
  const uint64_t bytes = bytes_of_tensor(spec);
  const uint64_t elements = elements_of(spec);
  const bool is_tied = contract.qwen() != nullptr && contract.qwen()->tied_embeddings;
  if (spec.optional) {
    ++inventory.tensor_count;
  } else {
    inventory.parameter_count += elements;
  }
  if (spec.role == TensorRole::Embedding) {
    inventory.embedding_bytes += bytes;
    if (!is_tied) {
      inventory.active_parameter_count += contract.hidden_size();
      inventory.cold_trunk_bytes += contract.hidden_size() * bytes_of(spec.published);
      return;
    }
  } else {
    (spec.role == TensorRole::LmHead ? inventory.lm_head_bytes : inventory.trunk_bytes) += bytes;
    if (spec.optional) return;
  }
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
  const uint64_t used = contract.experts_per_token();
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
  for (const TensorSpec& spec : contract.globals) add_global(spec, contract, inventory);
  for (uint32_t i = 0; i < contract.layers.size(); ++i) {
    const LayerContract& layer = contract.layers[i];
    ++inventory.mixer_layers[size_t(layer.mixer)];
    ++inventory.ffn_layers[size_t(layer.ffn)];
    for (const TensorSpec& spec : layer.trunk) add_trunk(spec, inventory);
    if (layer.experts) add_experts(contract, i, inventory);
  }
  return inventory;
}

}  // namespace deltafin::checkpoint
