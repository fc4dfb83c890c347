// The dimensions of the model families, as their config.json gives them. Names follow config.json
// where that is clear; docs/glossary.md has them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace deltafin::checkpoint {

enum class MixerKind : uint8_t { Kda, Mla, GatedDeltaNet, GroupedQuery };
inline constexpr size_t kMixerKindCount = 4;
enum class FfnKind : uint8_t { Dense, Moe };
inline constexpr size_t kFfnKindCount = 2;
enum class Activation : uint8_t { SwiGlu, SituGlu };
enum class RouterScore : uint8_t { Sigmoid, Softmax };

struct LayerKinds {
  MixerKind mixer = MixerKind::Kda;
  FfnKind ffn = FfnKind::Dense;
};

// Kimi K3 and Kimi-Linear.
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

// Qwen3.5-MoE (text), Qwen3-MoE and dense Qwen3. What a member does not have is 0.
struct QwenConfig {
  uint32_t hidden_size = 0;
  uint32_t vocab_size = 0;
  float rms_norm_eps = 0;
  // Qwen3.5: norms multiply with 1 + weight. Not the gated norm of the DeltaNet.
  bool zero_centred_norms = false;

  // Gated DeltaNet (Qwen3.5): value heads come in groups that share a key head
  uint32_t delta_key_head_count = 0;
  uint32_t delta_value_head_count = 0;  // a multiple of the key heads
  uint32_t delta_key_head_dim = 0;
  uint32_t delta_value_head_dim = 0;
  uint32_t conv_taps = 0;

  // grouped-query attention
  uint32_t head_count = 0;
  uint32_t kv_head_count = 0;  // divides head_count
  uint32_t head_dim = 0;
  uint32_t rotary_dim = 0;  // even; the first so many dimensions of a head are rotated
  double rope_theta = 0;
  bool attention_gate = false;  // Qwen3.5: q_proj holds a gate behind each head's query

  // feed-forward: dense_intermediate_size of dense models, the rest of the others
  uint32_t dense_intermediate_size = 0;
  uint32_t moe_intermediate_size = 0;
  uint32_t expert_count = 0;
  uint32_t experts_per_token = 0;
  bool router_renormalize = true;
  uint32_t shared_intermediate_size = 0;  // 0: no shared expert

  // The embedding serves as output head, unless the checkpoint has a head of its own as well.
  bool tied_embeddings = false;
};

}  // namespace deltafin::checkpoint
