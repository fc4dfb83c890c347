// The typed contract of a model, derived from config.json alone: sizes, layer kinds, and every
// tensor that must exist. Pure data; the checkpoint's files are compared with it before anything is
// allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "checkpoint/family.h"
#include "checkpoint/tensor.h"

namespace deltafin::checkpoint {

// How routed experts are stored: packed E2M1 codes with E8M0 scales per 32 columns, or plain
// F32/BF16.
enum class ExpertFormat : uint8_t { Mxfp4, Plain };
// How their tensors are called and divided: three or six tensors an expert, or two for all experts
// of a layer.
enum class ExpertNaming : uint8_t { Kimi, Qwen, QwenFused };

// How a checkpoint names the tensors of its text model.
struct TensorNames {
  std::string scope;  // what does not start with it belongs to something else and is ignored
  std::vector<std::string> ignored;  // what starts with one of these is ignored too
  std::string body;  // in front of "embed_tokens.weight", "norm.weight" and the layers
  std::string head;  // the output head, in full
};

struct ExpertContract {
  uint32_t expert_count = 0;
  uint32_t input_dim = 0;  // latent size, or hidden size where there is no latent
  uint32_t inner_dim = 0;
  ExpertFormat format = ExpertFormat::Plain;
  ExpertNaming naming = ExpertNaming::Kimi;
};

struct LayerContract {
  MixerKind mixer = MixerKind::Kda;
  FfnKind ffn = FfnKind::Dense;
  std::vector<TensorSpec> trunk;          // every tensor of the layer but the routed experts
  std::optional<ExpertContract> experts;  // present iff ffn == Moe
};

struct ModelContract {
  std::string architecture;  // as in config.json: "KimiK3ForConditionalGeneration"
  TensorNames names;
  std::variant<KimiConfig, QwenConfig> family;
  std::vector<TensorSpec> globals;
  std::vector<LayerContract> layers;

  uint64_t max_positions = 0;
  std::optional<int32_t> bos_token_id, eos_token_id, pad_token_id;

  // Config fields we neither use nor know to be without influence, as "text_config.name": a reader
  // of `inspect` should see them. They do not stop a model from opening.
  std::vector<std::string> unknown_fields;

  // What every family has.
  uint32_t hidden_size() const {
    return std::visit([](const auto& config) { return config.hidden_size; }, family);
  }
  uint32_t vocab_size() const {
    return std::visit([](const auto& config) { return config.vocab_size; }, family);
  }
  uint32_t experts_per_token() const {
    return std::visit([](const auto& config) { return config.experts_per_token; }, family);
  }
  // Null when the model is of another family.
  const KimiConfig* kimi() const { return std::get_if<KimiConfig>(&family); }
  const QwenConfig* qwen() const { return std::get_if<QwenConfig>(&family); }
};

// The parts of one routed expert, in this order. A plain expert has only the three weights.
//   w1 = gate [inner, input]   w3 = up [inner, input]   w2 = down [input, inner]
enum class ExpertPart : uint8_t { W1, W1Scale, W3, W3Scale, W2, W2Scale, Count };
inline constexpr size_t kExpertPartCount = static_cast<size_t>(ExpertPart::Count);

// Rows and columns of a part as stored: a packed matrix has half as many byte columns.
struct PartShape {
  uint64_t rows = 0, cols = 0;
};
PartShape part_shape(const ExpertContract& experts, ExpertPart part);

// One tensor of routed experts: what its name ends with, and the part it holds, or two, the second
// in the rows below the first. A fused tensor is [expert, rows, cols] and has no number in its
// name.
struct ExpertTensorForm {
  std::string_view suffix;
  ExpertPart part = ExpertPart::W1;
  std::optional<ExpertPart> second = std::nullopt;
};
std::span<const ExpertTensorForm> expert_tensor_forms(const ExpertContract& experts);
bool is_fused(const ExpertContract& experts);
// How often a layer has these tensors: once for every expert, or once.
uint32_t expert_set_count(const ExpertContract& experts);

struct ExpertTensorSpec {
  ExpertPart part = ExpertPart::W1;  // the first it holds
  std::string name;                  // "…experts.17.w1.weight_packed"
  std::vector<uint64_t> shape;
  bool is_u8 = false;  // packed codes and scales; otherwise F32 or BF16
};

// Those that set `set` of MoE layer `layer` must have: of one expert, or of all where they are
// fused.
std::vector<ExpertTensorSpec> expert_tensors(const ModelContract& contract, uint32_t layer,
                                             uint32_t set);

// The pieces of a tensor's name: names.body kLayers <layer> "." and then experts_infix <expert>
// <suffix>, or the rest of a trunk tensor's name.
inline constexpr std::string_view kLayers = "layers.";
std::string layer_prefix(const TensorNames& names, uint32_t layer);
std::string_view experts_infix(const ExpertContract& experts);

// Elements of a tensor in its first admitted shape.
std::optional<uint64_t> element_count(const TensorSpec& spec);
// Weights of one routed expert (a packed byte is two of them; scales are not parameters).
std::optional<uint64_t> expert_parameter_count(const ExpertContract& experts);
// All weights of the model, routed experts included; empty when they do not fit into 64 bits.
std::optional<uint64_t> parameter_count(const ModelContract& contract);
// All tensors that the contract asks for, without optional ones.
uint64_t tensor_count(const std::vector<TensorSpec>& specs);
uint64_t tensor_count(const LayerContract& layer);
uint64_t tensor_count(const ModelContract& contract);

}  // namespace deltafin::checkpoint
