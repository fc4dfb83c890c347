#include "checkpoint/contract.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/checked_math.h"

namespace deltafin::checkpoint {
namespace {

// One E8M0 scale for so many columns of an MXFP4 row; two E2M1 codes to a byte.
constexpr uint64_t kScaleGroupColumns = 32;
constexpr uint64_t kCodesPerByte = 2;

// Collects the specs of one layer (or of the model) under a common name prefix.
class SpecList {
 public:
  explicit SpecList(std::string prefix) : prefix_(std::move(prefix)) {}

  void matrix(TensorRole role, const char* name, uint64_t rows, uint64_t cols) {
    add(role, TensorKind::Matrix, name, {{rows, cols}});
  }
  void vector(TensorRole role, const char* name, uint64_t size) {
    add(role, TensorKind::Vector, name, {{size}});
  }
  // Score weights of the attention residuals are stored as one row of a matrix.
  void row(TensorRole role, const char* name, uint64_t size) {
    add(role, TensorKind::Vector, name, {{1, size}});
  }
  void add(TensorRole role, TensorKind kind, const char* name,
           std::vector<std::vector<uint64_t>> shapes) {
    specs_.push_back({role, kind, prefix_ + name, std::move(shapes)});
  }
  std::vector<TensorSpec> take() { return std::move(specs_); }

 private:
  std::string prefix_;
  std::vector<TensorSpec> specs_;
};

void add_kda(const KimiConfig& kimi, SpecList& list) {
  using enum TensorRole;
  const uint64_t hidden = kimi.hidden_size;
  const uint64_t heads = kimi.kda_head_count;
  const uint64_t head_dim = kimi.kda_head_dim;
  const uint64_t width = heads * head_dim;
  const std::vector<std::vector<uint64_t>> taps = {{width, 1, kimi.conv_taps}};

  list.matrix(QProj, "self_attn.q_proj.weight", width, hidden);
  list.matrix(KProj, "self_attn.k_proj.weight", width, hidden);
  list.matrix(VProj, "self_attn.v_proj.weight", width, hidden);
  list.add(QConv, TensorKind::Vector, "self_attn.q_conv1d.weight", taps);
  list.add(KConv, TensorKind::Vector, "self_attn.k_conv1d.weight", taps);
  list.add(VConv, TensorKind::Vector, "self_attn.v_conv1d.weight", taps);
  list.matrix(DecayA, "self_attn.f_a_proj.weight", head_dim, hidden);
  list.matrix(DecayB, "self_attn.f_b_proj.weight", width, head_dim);
  list.matrix(BetaProj, "self_attn.b_proj.weight", heads, hidden);
  // One scalar per head. K3 (the release with a gate bound) stores head_dim entries, of which the
  // first `heads` count and the rest is zero padding; Kimi-Linear stores [1, 1, heads, 1].
  std::vector<std::vector<uint64_t>> a_log = {{heads}, {1, 1, heads, 1}};
  if (head_dim > heads) {
    a_log.insert(kimi.kda_gate_lower_bound ? a_log.begin() : a_log.end(), {head_dim});
  }
  list.add(ALog, TensorKind::Vector, "self_attn.A_log", std::move(a_log));
  list.vector(DtBias, "self_attn.dt_bias", width);
  if (kimi.kda_full_rank_gate) {
    list.matrix(GProj, "self_attn.g_proj.weight", width, hidden);
  } else {
    list.matrix(GateA, "self_attn.g_a_proj.weight", head_dim, hidden);
    list.matrix(GateB, "self_attn.g_b_proj.weight", width, head_dim);
  }
  list.vector(HeadNorm, "self_attn.o_norm.weight", head_dim);
  list.matrix(OProj, "self_attn.o_proj.weight", hidden, width);
}

void add_mla(const KimiConfig& kimi, SpecList& list) {
  using enum TensorRole;
  const uint64_t hidden = kimi.hidden_size;
  const uint64_t heads = kimi.mla_head_count;
  const uint64_t query_dim = uint64_t{kimi.qk_nope_head_dim} + kimi.qk_rope_head_dim;
  const uint64_t value_width = heads * kimi.v_head_dim;

  if (kimi.q_lora_rank) {
    list.matrix(QueryA, "self_attn.q_a_proj.weight", *kimi.q_lora_rank, hidden);
    list.vector(QueryANorm, "self_attn.q_a_layernorm.weight", *kimi.q_lora_rank);
    list.matrix(QueryB, "self_attn.q_b_proj.weight", heads * query_dim, *kimi.q_lora_rank);
  } else {
    list.matrix(QProj, "self_attn.q_proj.weight", heads * query_dim, hidden);
  }
  list.matrix(KvA, "self_attn.kv_a_proj_with_mqa.weight",
              uint64_t{kimi.kv_lora_rank} + kimi.qk_rope_head_dim, hidden);
  list.vector(KvANorm, "self_attn.kv_a_layernorm.weight", kimi.kv_lora_rank);
  list.matrix(KvB, "self_attn.kv_b_proj.weight",
              heads * (uint64_t{kimi.qk_nope_head_dim} + kimi.v_head_dim), kimi.kv_lora_rank);
  if (kimi.mla_output_gate) list.matrix(GProj, "self_attn.g_proj.weight", value_width, hidden);
  list.matrix(OProj, "self_attn.o_proj.weight", hidden, value_width);
}

void add_dense(const KimiConfig& kimi, SpecList& list) {
  using enum TensorRole;
  list.matrix(MlpGate, "mlp.gate_proj.weight", kimi.dense_intermediate_size, kimi.hidden_size);
  list.matrix(MlpUp, "mlp.up_proj.weight", kimi.dense_intermediate_size, kimi.hidden_size);
  list.matrix(MlpDown, "mlp.down_proj.weight", kimi.hidden_size, kimi.dense_intermediate_size);
}

void add_moe(const KimiConfig& kimi, SpecList& list) {
  using enum TensorRole;
  const uint64_t hidden = kimi.hidden_size;
  list.matrix(Router, "block_sparse_moe.gate.weight", kimi.expert_count, hidden);
  list.vector(RouterBias, "block_sparse_moe.gate.e_score_correction_bias", kimi.expert_count);
  if (kimi.latent_size) {
    const uint64_t latent = *kimi.latent_size;
    list.matrix(LatentDown, "block_sparse_moe.routed_expert_down_proj.weight", latent, hidden);
    if (kimi.latent_norm) {
      list.vector(LatentNorm, "block_sparse_moe.routed_expert_norm.weight", latent);
    }
    list.matrix(LatentUp, "block_sparse_moe.routed_expert_up_proj.weight", hidden, latent);
  }
  const uint64_t shared = uint64_t{kimi.shared_expert_count} * kimi.moe_intermediate_size;
  list.matrix(SharedGate, "block_sparse_moe.shared_experts.gate_proj.weight", shared, hidden);
  list.matrix(SharedUp, "block_sparse_moe.shared_experts.up_proj.weight", shared, hidden);
  list.matrix(SharedDown, "block_sparse_moe.shared_experts.down_proj.weight", hidden, shared);
}

std::string layer_prefix(const std::string& prefix, uint32_t layer) {
  return fmt::format("{}{}{}.", prefix, kLayerPrefix, layer);
}

// [rows, cols] of one part as it is stored.
ExpertPartSpec part_spec(const ExpertContract& experts, ExpertPart part) {
  const bool is_down = part == ExpertPart::W2 || part == ExpertPart::W2Scale;
  const bool is_scale =
      part == ExpertPart::W1Scale || part == ExpertPart::W3Scale || part == ExpertPart::W2Scale;
  ExpertPartSpec spec{.part = part, .name = {}};
  spec.rows = is_down ? experts.input_dim : experts.inner_dim;
  spec.cols = is_down ? experts.inner_dim : experts.input_dim;
  if (experts.format == ExpertFormat::Mxfp4) {
    spec.cols /= is_scale ? kScaleGroupColumns : kCodesPerByte;
    spec.is_u8 = true;
  }
  return spec;
}

}  // namespace

std::string_view expert_name_suffix(ExpertFormat format, ExpertPart part) {
  const bool packed = format == ExpertFormat::Mxfp4;
  switch (part) {
    case ExpertPart::W1:
      return packed ? ".w1.weight_packed" : ".w1.weight";
    case ExpertPart::W1Scale:
      return packed ? ".w1.weight_scale" : "";
    case ExpertPart::W3:
      return packed ? ".w3.weight_packed" : ".w3.weight";
    case ExpertPart::W3Scale:
      return packed ? ".w3.weight_scale" : "";
    case ExpertPart::W2:
      return packed ? ".w2.weight_packed" : ".w2.weight";
    case ExpertPart::W2Scale:
      return packed ? ".w2.weight_scale" : "";
    case ExpertPart::Count:
      break;
  }
  return "";
}

std::vector<ExpertPartSpec> expert_tensors(const ModelContract& contract, uint32_t layer,
                                           uint32_t expert) {
  CHECK(layer < contract.layers.size() && contract.layers[layer].experts);
  const ExpertContract& experts = *contract.layers[layer].experts;
  CHECK(expert < experts.expert_count);

  std::vector<ExpertPartSpec> parts;
  for (size_t i = 0; i < kExpertPartCount; ++i) {
    const ExpertPart part = static_cast<ExpertPart>(i);
    const std::string_view suffix = expert_name_suffix(experts.format, part);
    if (suffix.empty()) continue;
    ExpertPartSpec spec = part_spec(experts, part);
    spec.name = fmt::format("{}{}{}{}{}{}", contract.tensor_prefix, kLayerPrefix, layer,
                            kExpertsInfix, expert, suffix);
    parts.push_back(std::move(spec));
  }
  return parts;
}

std::vector<TensorSpec> global_tensors(const std::string& prefix, const KimiConfig& kimi) {
  using enum TensorRole;
  SpecList list(prefix);
  list.matrix(Embedding, "model.embed_tokens.weight", kimi.vocab_size, kimi.hidden_size);
  list.vector(FinalNorm, "model.norm.weight", kimi.hidden_size);
  if (kimi.attn_res_block_size) {
    list.vector(OutputResNorm, "model.output_attn_res_norm.weight", kimi.hidden_size);
    list.row(OutputResProj, "model.output_attn_res_proj.weight", kimi.hidden_size);
  }
  list.matrix(LmHead, "lm_head.weight", kimi.vocab_size, kimi.hidden_size);
  return list.take();
}

std::vector<TensorSpec> trunk_tensors(const std::string& prefix, const KimiConfig& kimi,
                                      uint32_t layer, MixerKind mixer, FfnKind ffn) {
  using enum TensorRole;
  SpecList list(layer_prefix(prefix, layer));
  if (kimi.attn_res_block_size) {
    list.vector(AttentionResNorm, "self_attention_res_norm.weight", kimi.hidden_size);
    list.row(AttentionResProj, "self_attention_res_proj.weight", kimi.hidden_size);
  }
  list.vector(InputNorm, "input_layernorm.weight", kimi.hidden_size);
  switch (mixer) {
    case MixerKind::Kda:
      add_kda(kimi, list);
      break;
    case MixerKind::Mla:
      add_mla(kimi, list);
      break;
  }
  if (kimi.attn_res_block_size) {
    list.vector(MlpResNorm, "mlp_res_norm.weight", kimi.hidden_size);
    list.row(MlpResProj, "mlp_res_proj.weight", kimi.hidden_size);
  }
  list.vector(PostAttentionNorm, "post_attention_layernorm.weight", kimi.hidden_size);
  switch (ffn) {
    case FfnKind::Dense:
      add_dense(kimi, list);
      break;
    case FfnKind::Moe:
      add_moe(kimi, list);
      break;
  }
  return list.take();
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
  for (const TensorSpec& spec : contract.globals) add(element_count(spec));
  for (const LayerContract& layer : contract.layers) {
    for (const TensorSpec& spec : layer.trunk) add(element_count(spec));
    if (!layer.experts) continue;
    const std::optional<uint64_t> one = expert_parameter_count(*layer.experts);
    add(one ? checked_multiply(*one, layer.experts->expert_count) : std::nullopt);
  }
  return total;
}

uint64_t tensor_count(const LayerContract& layer) {
  if (!layer.experts) return layer.trunk.size();
  const uint64_t parts = layer.experts->format == ExpertFormat::Mxfp4 ? kExpertPartCount : 3;
  return layer.trunk.size() + parts * layer.experts->expert_count;
}

uint64_t tensor_count(const ModelContract& contract) {
  // At most limits::kLayers x limits::kExperts x 6 < 2^31 experts' tensors: no overflow.
  uint64_t total = contract.globals.size();
  for (const LayerContract& layer : contract.layers) total += tensor_count(layer);
  return total;
}

}  // namespace deltafin::checkpoint
