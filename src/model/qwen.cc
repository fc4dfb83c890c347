#include "model/qwen.h"

#include <algorithm>

#include "model/embedding.h"
#include "model/gated_delta_net.h"
#include "model/grouped_query_attention.h"
#include "model/linear.h"
#include "model/moe.h"

namespace deltafin::model {

using checkpoint::LayerContract;
using checkpoint::MixerKind;
using checkpoint::ModelContract;
using checkpoint::QwenConfig;
using checkpoint::TensorRole;
using memory::LayerWeights;
using memory::TrunkLease;

namespace {

MoeShape moe_shape(const QwenConfig& config) {
  MoeShape shape;
  shape.router = {.top_k = config.experts_per_token,
                  .score = numerics::RouterScore::Softmax,
                  .renormalize = config.router_renormalize};
  shape.expert_count = config.expert_count;
  shape.hidden_size = shape.expert_width = config.hidden_size;
  shape.shared_width = config.shared_intermediate_size;
  shape.shared_gate = config.shared_intermediate_size > 0;
  return shape;  // SwiGLU, the default
}

class QwenModel final : public Model {
 public:
  QwenModel(const ModelContract& contract, const memory::Trunk& trunk)
      : contract_(contract),
        config_(*contract.qwen()),
        globals_(trunk.globals()),
        layout_(qwen_state_layout(contract)),
        moe_(moe_shape(config_)),
        attention_(config_) {}

  size_t layer_count() const override { return contract_.layers.size(); }
  size_t vocab_size() const override { return config_.vocab_size; }
  const state::Layout& state_layout() const override { return layout_; }
  uint64_t activation_bytes_per_row() const override {
    return qwen_activation_bytes_per_row(contract_);
  }
  Result<Activations> embed(Context& context, std::span<const TokenId> tokens) const override;
  Status forward_layer(Context& context, size_t layer, std::span<const Segment> segments,
                       Activations& activations) const override;
  Status logits(Context& context, const Activations& activations, std::span<const uint32_t> rows,
                Rows logits) const override;
  void replay(Context& context, state::Transaction& transaction, size_t accepted) const override;

 private:
  Norm norm(std::span<const float> weight) const {
    return {weight, config_.rms_norm_eps,
            config_.zero_centred_norms ? numerics::NormWeight::ZeroCentred
                                       : numerics::NormWeight::Plain};
  }
  void mixer(Context& context, size_t layer, const LayerWeights& weights,
             std::span<const Segment> segments, Rows rows, Rows out) const;
  // Which experts `layer` may want, by the rows as they are before it.
  void give_hint(Context& context, size_t layer, Rows residual) const;

  const ModelContract& contract_;
  const QwenConfig& config_;
  const LayerWeights& globals_;
  state::Layout layout_;
  MoeShape moe_;
  GroupedQueryAttention attention_;
};

Result<Activations> QwenModel::embed(Context& context, std::span<const TokenId> tokens) const {
  return embed_tokens(context, tokens, config_.hidden_size);
}

Status QwenModel::forward_layer(Context& context, size_t layer, std::span<const Segment> segments,
                                Activations& activations) const {
  const Workspace::Scope scope(context.workspace);
  TRY(const TrunkLease weights, context.trunk.layer(uint32_t(layer), context.cancel));
  const Rows residual = activations.residual.view();
  const Rows normed = context.workspace.take(residual.count, residual.width);
  const Rows update = context.workspace.take(residual.count, residual.width);

  rms_norm(context, residual, norm(weights->vector(TensorRole::InputNorm)), normed);
  mixer(context, layer, *weights, segments, normed, update);
  if (context.observer != nullptr) context.observer->on_mixer_output(layer, update);
  add_rows(context, residual, update, residual);

  rms_norm(context, residual, norm(weights->vector(TensorRole::PostAttentionNorm)), normed);
  TRY_STATUS(ffn(context, contract_.layers[layer].ffn, moe_, *weights, layer, normed, update,
                 [&] { give_hint(context, layer + 1, residual); }));
  if (context.observer != nullptr) context.observer->on_ffn_output(layer, update);
  add_rows(context, residual, update, residual);
  if (context.observer != nullptr) context.observer->on_layer_output(layer, residual);
  return context.cancel.check();
}

void QwenModel::mixer(Context& context, size_t layer, const LayerWeights& weights,
                      std::span<const Segment> segments, Rows rows, Rows out) const {
  const Workspace::Scope scope(context.workspace);
  if (contract_.layers[layer].mixer == MixerKind::GatedDeltaNet) {
    gated_delta_net(context, config_, weights, layer, segments, rows, out);
  } else {
    attention_.run(context, weights, layer, segments, rows, out);
  }
}

void QwenModel::give_hint(Context& context, size_t layer, Rows residual) const {
  if (layer == layer_count() || !context.experts.wants_hints(uint32_t(layer))) return;
  const LayerWeights* const weights = context.trunk.find_resident(uint32_t(layer));
  if (weights == nullptr) return;
  const Rows some = residual.slice(0, std::min(residual.count, kHintRows));
  const OwnedRows normed(some.count, some.width);
  rms_norm(context, some, norm(weights->vector(TensorRole::PostAttentionNorm)), normed.view());
  expect_experts(context, moe_, *weights, layer, normed.view());
}

Status QwenModel::logits(Context& context, const Activations& activations,
                         std::span<const uint32_t> rows, Rows logits) const {
  const Workspace::Scope scope(context.workspace);
  CHECK(logits.count == rows.size() && logits.width == vocab_size());
  const Rows residual = activations.residual.view();
  const Rows final = context.workspace.take(rows.size(), residual.width);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(residual.row(rows[i]), residual.width, final.row(i));
  rms_norm(context, final, norm(globals_.vector(TensorRole::FinalNorm)), final);
  if (context.observer != nullptr) context.observer->on_final_norm(final);
  const TensorRole head =
      globals_.has(TensorRole::LmHead) ? TensorRole::LmHead : TensorRole::Embedding;
  return project_logits(context, globals_.matrix(head), final, logits);
}

void QwenModel::replay(Context& context, state::Transaction& transaction, size_t accepted) const {
  for (size_t layer = 0; layer < layer_count(); ++layer)
    if (contract_.layers[layer].mixer == MixerKind::GatedDeltaNet)
      gated_delta_net_replay(context, config_, layer, transaction, accepted);
}

}  // namespace

std::unique_ptr<Model> open_qwen(const ModelContract& contract, const memory::Trunk& trunk) {
  return std::make_unique<QwenModel>(contract, trunk);
}

state::Layout qwen_state_layout(const ModelContract& contract) {
  const QwenConfig& config = *contract.qwen();
  state::Layout layout;
  for (const LayerContract& layer : contract.layers) {
    if (layer.mixer == MixerKind::GatedDeltaNet) {
      layout.layers.push_back(gated_delta_net_state_layout(config));
    } else {
      layout.layers.push_back(grouped_query_state_layout(config));
    }
  }
  return layout;
}

uint64_t qwen_activation_bytes_per_row(const ModelContract& contract) {
  const QwenConfig& config = *contract.qwen();
  const uint64_t layer = std::max(
      {gated_delta_net_workspace_per_row(config), GroupedQueryAttention(config).workspace_per_row(),
       moe_workspace_per_row(moe_shape(config)), 3 * uint64_t{config.dense_intermediate_size}});
  return (kVectorsOfARow * config.hidden_size + layer) * sizeof(float);
}

}  // namespace deltafin::model
