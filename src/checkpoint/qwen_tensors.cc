#include "checkpoint/qwen_tensors.h"

#include "checkpoint/spec_list.h"

namespace deltafin::checkpoint {
namespace {

void add_gated_delta_net(const QwenConfig& qwen, SpecList& list) {
  using enum TensorRole;
  const uint64_t hidden = qwen.hidden_size;
  const uint64_t value_heads = qwen.delta_value_head_count;
  const uint64_t key_width = uint64_t{qwen.delta_key_head_count} * qwen.delta_key_head_dim;
  const uint64_t value_width = value_heads * qwen.delta_value_head_dim;
  const uint64_t channels = 2 * key_width + value_width;

  list.matrix(QkvProj, "linear_attn.in_proj_qkv.weight", channels, hidden);
  list.matrix(ZProj, "linear_attn.in_proj_z.weight", value_width, hidden);
  list.matrix(BetaProj, "linear_attn.in_proj_b.weight", value_heads, hidden);
  list.matrix(DecayProj, "linear_attn.in_proj_a.weight", value_heads, hidden);
  list.add(QkvConv, TensorKind::Vector, "linear_attn.conv1d.weight",
           {{channels, 1, qwen.conv_taps}});
  // F32 as published with Qwen3.5; Qwen3.6 has them in BF16.
  list.vector(ALog, "linear_attn.A_log", value_heads, DType::F32);
  list.vector(DtBias, "linear_attn.dt_bias", value_heads);
  list.vector(HeadNorm, "linear_attn.norm.weight", qwen.delta_value_head_dim, DType::F32);
  list.matrix(OProj, "linear_attn.out_proj.weight", hidden, value_width);
}

void add_attention(const QwenConfig& qwen, SpecList& list) {
  using enum TensorRole;
  const uint64_t hidden = qwen.hidden_size;
  const uint64_t width = uint64_t{qwen.head_count} * qwen.head_dim;
  const uint64_t kv_width = uint64_t{qwen.kv_head_count} * qwen.head_dim;

  list.matrix(QProj, "self_attn.q_proj.weight", qwen.attention_gate ? 2 * width : width, hidden);
  list.matrix(KProj, "self_attn.k_proj.weight", kv_width, hidden);
  list.matrix(VProj, "self_attn.v_proj.weight", kv_width, hidden);
  list.vector(QNorm, "self_attn.q_norm.weight", qwen.head_dim);
  list.vector(KNorm, "self_attn.k_norm.weight", qwen.head_dim);
  list.matrix(OProj, "self_attn.o_proj.weight", hidden, width);
}

void add_dense(const QwenConfig& qwen, SpecList& list) {
  using enum TensorRole;
  list.matrix(MlpGate, "mlp.gate_proj.weight", qwen.dense_intermediate_size, qwen.hidden_size);
  list.matrix(MlpUp, "mlp.up_proj.weight", qwen.dense_intermediate_size, qwen.hidden_size);
  list.matrix(MlpDown, "mlp.down_proj.weight", qwen.hidden_size, qwen.dense_intermediate_size);
}

void add_moe(const QwenConfig& qwen, SpecList& list) {
  using enum TensorRole;
  const uint64_t hidden = qwen.hidden_size;
  const uint64_t shared = qwen.shared_intermediate_size;
  list.matrix(Router, "mlp.gate.weight", qwen.expert_count, hidden);
  if (shared == 0) return;
  list.matrix(SharedGate, "mlp.shared_expert.gate_proj.weight", shared, hidden);
  list.matrix(SharedUp, "mlp.shared_expert.up_proj.weight", shared, hidden);
  list.matrix(SharedDown, "mlp.shared_expert.down_proj.weight", hidden, shared);
  list.matrix(SharedExpertGate, "mlp.shared_expert_gate.weight", 1, hidden);
}

}  // namespace

std::vector<TensorSpec> qwen_global_tensors(const TensorNames& names, const QwenConfig& qwen) {
  using enum TensorRole;
  SpecList list("");
  list.matrix(Embedding, names.body + "embed_tokens.weight", qwen.vocab_size, qwen.hidden_size);
  list.vector(FinalNorm, names.body + "norm.weight", qwen.hidden_size);
  list.matrix(LmHead, names.head, qwen.vocab_size, qwen.hidden_size);
  if (qwen.tied_embeddings) list.make_last_optional();
  return list.take();
}

std::vector<TensorSpec> qwen_trunk_tensors(const TensorNames& names, const QwenConfig& qwen,
                                           uint32_t layer, LayerKinds kinds) {
  using enum TensorRole;
  SpecList list(layer_prefix(names, layer));
  list.vector(InputNorm, "input_layernorm.weight", qwen.hidden_size);
  kinds.mixer == MixerKind::GroupedQuery ? add_attention(qwen, list)
                                         : add_gated_delta_net(qwen, list);
  list.vector(PostAttentionNorm, "post_attention_layernorm.weight", qwen.hidden_size);
  kinds.ffn == FfnKind::Moe ? add_moe(qwen, list) : add_dense(qwen, list);
  return list.take();
}

}  // namespace deltafin::checkpoint
