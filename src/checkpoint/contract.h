// The typed contract of a model, derived from config.json alone: sizes, layer kinds, and every
// tensor that must exist. Pure data; the checkpoint's files are compared with it before anything is
// allocated.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor.h"

namespace deltafin::checkpoint {

enum class MixerKind : uint8_t { Kda, Mla };
enum class FfnKind : uint8_t { Dense, Moe };
enum class Activation : uint8_t { SwiGlu, SituGlu };
enum class RouterScore : uint8_t { Sigmoid, Softmax };
// How routed experts are stored: packed E2M1 codes with E8M0 scales per 32 columns, or plain
// F32/BF16.
enum class ExpertFormat : uint8_t { Mxfp4, Plain };

// The dimensions of Kimi K3 and Kimi-Linear. Names follow config.json; docs/glossary.md has them
// all.
struct KimiConfig {
  uint32_t hidden_size = 0;
  uint32_t vocab_size = 0;
  float rms_norm_eps = 0;

  // Kimi Delta Attention
  uint32_t kda_head_count = 0;
  uint32_t kda_head_dim = 0;
  uint32_t conv_taps = 0;
  bool kda_full_rank_gate = false;            // g_proj, else g_a_proj and g_b_proj
  std::optional<float> kda_gate_lower_bound;  // sigmoid decay with this bound, else softplus

  // multi-head latent attention
  uint32_t mla_head_count = 0;
  std::optional<uint32_t> q_lora_rank;  // absent: direct q_proj
  uint32_t kv_lora_rank = 0;
  uint32_t qk_nope_head_dim = 0;
  uint32_t qk_rope_head_dim = 0;  // never rotated in this family
  uint32_t v_head_dim = 0;
  bool mla_output_gate = false;

  // feed-forward
  Activation activation = Activation::SwiGlu;
  float situ_beta = 1;                    // SituGlu only
  std::optional<float> situ_linear_beta;  // absent: the up factor is used as it is
  uint32_t dense_intermediate_size = 0;
  uint32_t moe_intermediate_size = 0;
  uint32_t expert_count = 0;
  uint32_t experts_per_token = 0;
  uint32_t shared_expert_count = 0;     // fused into one MLP of width count x moe size
  std::optional<uint32_t> latent_size;  // absent: experts read the hidden state
  bool latent_norm = false;
  RouterScore router_score = RouterScore::Sigmoid;
  bool router_renormalize = true;
  float router_scale = 1;
  uint32_t router_group_count = 1;
  uint32_t router_groups_kept = 1;

  std::optional<uint32_t> attn_res_block_size;  // absent: plain residuals
};

struct ExpertContract {
  uint32_t expert_count = 0;
  uint32_t input_dim = 0;  // latent size, or hidden size where there is no latent
  uint32_t inner_dim = 0;
  ExpertFormat format = ExpertFormat::Plain;
};

struct LayerContract {
  MixerKind mixer = MixerKind::Kda;
  FfnKind ffn = FfnKind::Dense;
  std::vector<TensorSpec> trunk;          // every tensor of the layer but the routed experts
  std::optional<ExpertContract> experts;  // present iff ffn == Moe
};

struct ModelContract {
  std::string architecture;   // "KimiK3ForConditionalGeneration" or "KimiLinearForCausalLM"
  std::string tensor_prefix;  // "language_model." or ""
  KimiConfig kimi;
  std::vector<TensorSpec> globals;
  std::vector<LayerContract> layers;

  uint64_t max_positions = 0;
  std::optional<int32_t> bos_token_id, eos_token_id, pad_token_id;

  // Config fields we neither use nor know to be without influence, as "text_config.name": a reader
  // of `inspect` should see them. They do not stop a model from opening.
  std::vector<std::string> unknown_fields;
};

// The parts of one routed expert, in this order. A plain expert has only the three weights.
//   w1 = gate [inner, input]   w3 = up [inner, input]   w2 = down [input, inner]
enum class ExpertPart : uint8_t { W1, W1Scale, W3, W3Scale, W2, W2Scale, Count };
inline constexpr size_t kExpertPartCount = static_cast<size_t>(ExpertPart::Count);

struct ExpertPartSpec {
  ExpertPart part;
  std::string name;             // "…experts.17.w1.weight_packed"
  uint64_t rows = 0, cols = 0;  // as stored: a packed matrix has half as many byte columns
  bool is_u8 = false;           // packed codes and scales; otherwise F32 or BF16
};

// The tensors that expert `expert` of MoE layer `layer` must have, in ExpertPart order.
std::vector<ExpertPartSpec> expert_tensors(const ModelContract& contract, uint32_t layer,
                                           uint32_t expert);

// The pieces of a routed expert's tensor name: <tensor_prefix> kLayerPrefix <layer> kExpertsInfix
// <expert> <suffix>. The suffix is empty where the format has no such part.
inline constexpr std::string_view kLayerPrefix = "model.layers.";
inline constexpr std::string_view kExpertsInfix = ".block_sparse_moe.experts.";
std::string_view expert_name_suffix(ExpertFormat format, ExpertPart part);

// The tensor lists of a contract, from sizes and kinds that parse_config has checked. Trunk order
// is the order in which a layer needs them: attention first, then feed-forward.
std::vector<TensorSpec> global_tensors(const std::string& prefix, const KimiConfig& kimi);
std::vector<TensorSpec> trunk_tensors(const std::string& prefix, const KimiConfig& kimi,
                                      uint32_t layer, MixerKind mixer, FfnKind ffn);

// Elements of a tensor in its first admitted shape.
std::optional<uint64_t> element_count(const TensorSpec& spec);
// Weights of one routed expert (a packed byte is two of them; scales are not parameters).
std::optional<uint64_t> expert_parameter_count(const ExpertContract& experts);
// All weights of the model, routed experts included; empty when they do not fit into 64 bits.
std::optional<uint64_t> parameter_count(const ModelContract& contract);
// All tensors that the contract asks for.
uint64_t tensor_count(const LayerContract& layer);
uint64_t tensor_count(const ModelContract& contract);

}  // namespace deltafin::checkpoint
