#include "checkpoint/kimi_tensors.h"

#include "checkpoint/spec_list.h"

namespace deltafin::checkpoint {
namespace {

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
  list.add(QConv, TensorKind::Vector, "self_attn.q_conv1d.weight", taps, DType::F32);
  list.add(KConv, TensorKind::Vector, "self_attn.k_conv1d.weight", taps, DType::F32);
  list.add(VConv, TensorKind::Vector, "self_attn.v_conv1d.weight", taps, DType::F32);
  list.matrix(DecayA, "self_attn.f_a_proj.weight", head_dim, hidden);
  list.matrix(DecayB, "self_attn.f_b_proj.weight", width, head_dim);
  list.matrix(BetaProj, "self_attn.b_proj.weight", heads, hidden);
  // One scalar per head. K3 (the release with a gate bound) stores head_dim entries, of which the
  // first `heads` count and the rest is zero padding; Kimi-Linear stores [1, 1, heads, 1].
  std::vector<std::vector<uint64_t>> a_log = {{heads}, {1, 1, heads, 1}};
  if (head_dim > heads) {
    a_log.insert(kimi.kda_gate_lower_bound ? a_log.begin() : a_log.end(), {head_dim});
  }
  list.add(ALog, TensorKind::Vector, "self_attn.A_log", std::move(a_log), DType::F32);
  list.vector(DtBias, "self_attn.dt_bias", width, DType::F32);
  if (kimi.kda_full_rank_gate) {
    list.matrix(GProj, "self_attn.g_proj.weight", width, hidden);
  } else {
    list.matrix(GateA, "self_attn.g_a_proj.weight", head_dim, hidden);
    list.matrix(GateB, "self_attn.g_b_proj.weight", width, head_dim);
  }
  list.vector(HeadNorm, "self_attn.o_norm.weight", head_dim, DType::F32);
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
  list.vector(RouterBias, "block_sparse_moe.gate.e_score_correction_bias", kimi.expert_count,
              DType::F32);
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

}  // namespace

std::vector<TensorSpec> kimi_global_tensors(const TensorNames& names, const KimiConfig& kimi) {
  using enum TensorRole;
  SpecList list("");
  list.matrix(Embedding, names.body + "embed_tokens.weight", kimi.vocab_size, kimi.hidden_size);
  list.vector(FinalNorm, names.body + "norm.weight", kimi.hidden_size);
  if (kimi.attn_res_block_size) {
    list.vector(OutputResNorm, names.body + "output_attn_res_norm.weight", kimi.hidden_size);
    list.row(OutputResProj, names.body + "output_attn_res_proj.weight", kimi.hidden_size);
  }
  list.matrix(LmHead, names.head, kimi.vocab_size, kimi.hidden_size);
  return list.take();
}

std::vector<TensorSpec> kimi_trunk_tensors(const TensorNames& names, const KimiConfig& kimi,
                                           uint32_t layer, LayerKinds kinds) {
  using enum TensorRole;
  SpecList list(layer_prefix(names, layer));
  if (kimi.attn_res_block_size) {
    list.vector(AttentionResNorm, "self_attention_res_norm.weight", kimi.hidden_size);
    list.row(AttentionResProj, "self_attention_res_proj.weight", kimi.hidden_size);
  }
  list.vector(InputNorm, "input_layernorm.weight", kimi.hidden_size);
  kinds.mixer == MixerKind::Mla ? add_mla(kimi, list) : add_kda(kimi, list);
  if (kimi.attn_res_block_size) {
    list.vector(MlpResNorm, "mlp_res_norm.weight", kimi.hidden_size);
    list.row(MlpResProj, "mlp_res_proj.weight", kimi.hidden_size);
  }
  list.vector(PostAttentionNorm, "post_attention_layernorm.weight", kimi.hidden_size);
  kinds.ffn == FfnKind::Moe ? add_moe(kimi, list) : add_dense(kimi, list);
  return list.take();
}

}  // namespace deltafin::checkpoint
