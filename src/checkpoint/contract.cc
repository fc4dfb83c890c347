#include "checkpoint/contract.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace deltafin::checkpoint {
namespace {

using enum ExpertPart;

// One E8M0 scale for so many columns of an MXFP4 row; two E2M1 codes to a byte.
constexpr uint64_t kScaleGroupColumns = 32;
constexpr uint64_t kCodesPerByte = 2;

constexpr ExpertTensorForm kKimiPacked[] = {
    {".w1.weight_packed", W1},     {".w1.weight_scale", W1Scale}, {".w3.weight_packed", W3},
    {".w3.weight_scale", W3Scale}, {".w2.weight_packed", W2},     {".w2.weight_scale", W2Scale},
};
constexpr ExpertTensorForm kKimiPlain[] = {
    {".w1.weight", W1}, {".w3.weight", W3}, {".w2.weight", W2}};
constexpr ExpertTensorForm kQwen[] = {
    {".gate_proj.weight", W1}, {".up_proj.weight", W3}, {".down_proj.weight", W2}};
constexpr ExpertTensorForm kQwenFused[] = {{"gate_up_proj", W1, W3}, {"down_proj", W2}};

bool is_scale(ExpertPart part) { return part == W1Scale || part == W3Scale || part == W2Scale; }

std::vector<uint64_t> shape_of(const ExpertContract& experts, const ExpertTensorForm& form) {
  const PartShape first = part_shape(experts, form.part);
  std::vector<uint64_t> shape = {first.rows, first.cols};
  if (form.second) shape[0] += part_shape(experts, *form.second).rows;
  if (is_fused(experts)) shape.insert(shape.begin(), experts.expert_count);
  return shape;
}

}  // namespace

bool is_fused(const ExpertContract& experts) { return experts.naming == ExpertNaming::QwenFused; }

uint32_t expert_set_count(const ExpertContract& experts) {
  return is_fused(experts) ? 1 : experts.expert_count;
}

std::string_view experts_infix(const ExpertContract& experts) {
  return experts.naming == ExpertNaming::Kimi ? "block_sparse_moe.experts." : "mlp.experts.";
}

std::span<const ExpertTensorForm> expert_tensor_forms(const ExpertContract& experts) {
  switch (experts.naming) {
    case ExpertNaming::Kimi:
      if (experts.format == ExpertFormat::Mxfp4) return kKimiPacked;
      return kKimiPlain;
    case ExpertNaming::Qwen:
      return kQwen;
    case ExpertNaming::QwenFused:
      return kQwenFused;
  }
  return {};
}

PartShape part_shape(const ExpertContract& experts, ExpertPart part) {
  const bool is_down = part == W2 || part == W2Scale;
  PartShape shape{is_down ? experts.input_dim : experts.inner_dim,
                  is_down ? experts.inner_dim : experts.input_dim};
  if (experts.format == ExpertFormat::Mxfp4)
    shape.cols /= is_scale(part) ? kScaleGroupColumns : kCodesPerByte;
  return shape;
}

std::string layer_prefix(const TensorNames& names, uint32_t layer) {
  return fmt::format("{}{}{}.", names.body, kLayers, layer);
}

std::vector<ExpertTensorSpec> expert_tensors(const ModelContract& contract, uint32_t layer,
                                             uint32_t set) {
  CHECK(layer < contract.layers.size() && contract.layers[layer].experts);
  const ExpertContract& experts = *contract.layers[layer].experts;
  CHECK(set < expert_set_count(experts));

  std::string prefix = layer_prefix(contract.names, layer);
  prefix += experts_infix(experts);
  if (!is_fused(experts)) prefix += fmt::format("{}", set);
  std::vector<ExpertTensorSpec> tensors;
  for (const ExpertTensorForm& form : expert_tensor_forms(experts))
    tensors.push_back({.part = form.part,
                       .name = prefix + std::string(form.suffix),
                       .shape = shape_of(experts, form),
                       .is_u8 = experts.format == ExpertFormat::Mxfp4});
  return tensors;
}

std::optional<uint64_t> element_count(const TensorSpec& spec) {
  return checked_product(spec.shapes.front());
}

std::optional<uint64_t> expert_parameter_count(const ExpertContract& experts) {
  const uint64_t sides[] = {3, experts.input_dim, experts.inner_dim};
  return checked_product(sides);
}

std::optional<uint64_t> parameter_count(const ModelContract& contract) {
  std::optional<uint64_t> total = 0;
  const auto add = [&total](std::optional<uint64_t> count) {
    total = total && count ? checked_add(*total, *count) : std::nullopt;
  };
  for (const TensorSpec& spec : contract.globals)
    if (!spec.optional) add(element_count(spec));
  for (const LayerContract& layer : contract.layers) {
    for (const TensorSpec& spec : layer.trunk) add(element_count(spec));
    if (!layer.experts) continue;
    const std::optional<uint64_t> one = expert_parameter_count(*layer.experts);
    add(one ? checked_multiply(*one, layer.experts->expert_count) : std::nullopt);
  }
  return total;
}

uint64_t tensor_count(const std::vector<TensorSpec>& specs) {
  return uint64_t(std::ranges::count(specs, false, &TensorSpec::optional));
}

uint64_t tensor_count(const LayerContract& layer) {
  if (!layer.experts) return tensor_count(layer.trunk);
  return tensor_count(layer.trunk) +
         expert_tensor_forms(*layer.experts).size() * expert_set_count(*layer.experts);
}

uint64_t tensor_count(const ModelContract& contract) {
  // At most limits::kLayers x limits::kExperts x 6 < 2^31 experts' tensors: no overflow.
  uint64_t total = tensor_count(contract.globals);
  for (const LayerContract& layer : contract.layers) total += tensor_count(layer);
  return total;
}

}  // namespace deltafin::checkpoint
