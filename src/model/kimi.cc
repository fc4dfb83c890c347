#include "model/kimi.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "model/attention_residual.h"
#include "model/embedding.h"
#include "model/kda.h"
#include "model/linear.h"
#include "model/mla.h"
#include "model/moe.h"

namespace deltafin::model {

using checkpoint::KimiConfig;
using checkpoint::LayerContract;
using checkpoint::MixerKind;
using checkpoint::ModelContract;
using checkpoint::TensorRole;
using memory::LayerWeights;
using memory::TrunkLease;

namespace {

MoeShape moe_shape(const KimiConfig& config) {
  MoeShape shape;
  shape.router = {.top_k = config.experts_per_token,
                  .score = config.router_score == checkpoint::RouterScore::Sigmoid
                               ? numerics::RouterScore::Sigmoid
                               : numerics::RouterScore::Softmax,
                  .renormalize = config.router_renormalize,
                  .scale = config.router_scale,
                  .group_count = config.router_group_count,
                  .groups_kept = config.router_groups_kept};
  shape.expert_count = config.expert_count;
  shape.hidden_size = config.hidden_size;
  shape.expert_width = config.latent_size.value_or(config.hidden_size);
  shape.latent = config.latent_size.has_value();
  shape.latent_norm = config.latent_norm;
  shape.latent_norm_epsilon = config.rms_norm_eps;
  shape.shared_width = config.shared_expert_count * config.moe_intermediate_size;
  shape.function = kimi_expert_function(config);
  return shape;
}

class KimiModel final : public Model {
 public:
  KimiModel(const ModelContract& contract, const memory::Trunk& trunk)
      : contract_(contract),
        config_(*contract.kimi()),
        globals_(trunk.globals()),
        layout_(kimi_state_layout(contract)),
        moe_(moe_shape(config_)) {}

  Status prepare(const memory::Trunk& trunk);

  size_t layer_count() const override { return contract_.layers.size(); }
  size_t vocab_size() const override { return config_.vocab_size; }
  const state::Layout& state_layout() const override { return layout_; }
  uint64_t activation_bytes_per_row() const override {
    return kimi_activation_bytes_per_row(contract_);
  }
  Result<Activations> embed(Context& context, std::span<const TokenId> tokens) const override;
  Status forward_layer(Context& context, size_t layer, std::span<const Segment> segments,
                       Activations& activations) const override;
  Status logits(Context& context, const Activations& activations, std::span<const uint32_t> rows,
                Rows logits) const override;
  void replay(Context& context, state::Transaction& transaction, size_t accepted) const override;

 private:
  // The score weights of a layer's two residual mixes.
  struct ResidualWeights {
    std::vector<float> attention, mlp;
  };

  bool has_attention_residuals() const { return config_.attn_res_block_size.has_value(); }
  void mix(Context& context, const Activations& activations, std::span<const float> score_weight,
           Rows out) const {
    attention_residual(context, activations.blocks, activations.residual.view(), score_weight,
                       config_.rms_norm_eps, out);
  }
  void mixer(Context& context, size_t layer, const LayerWeights& weights,
             std::span<const Segment> segments, Rows rows, Rows out) const;
  // Which experts `layer` may want, by the activations as they are before it.
  void give_hint(Context& context, size_t layer, const Activations& activations) const;

  const ModelContract& contract_;
  const KimiConfig& config_;
  const LayerWeights& globals_;
  state::Layout layout_;
  MoeShape moe_;
  std::vector<ResidualWeights> residual_weights_;
  std::vector<float> output_residual_weight_;
};

// K3 pads A_log from its heads up to head_dim with zeros. Anything else behind the heads would mean
// that the tensor is indexed some other way.
Status check_a_log(const KimiConfig& config, size_t layer, const LayerWeights& weights) {
  const std::span<const float> a_log = weights.vector(TensorRole::ALog);
  for (size_t i = config.kda_head_count; i < a_log.size(); ++i) {
    if (a_log[i] == 0) continue;
    return fail(
        ErrorCode::BadModel,
        fmt::format("layer {}: A_log has {} entries for {} heads and entry {} is {}; expected "
                    "zeros behind the heads",
                    layer, a_log.size(), config.kda_head_count, i, a_log[i]));
  }
  return {};
}

Status KimiModel::prepare(const memory::Trunk& trunk) {
  for (uint32_t i = 0; i < layer_count(); ++i) {
    const LayerWeights& weights = trunk.vectors(i);
    if (contract_.layers[i].mixer == MixerKind::Kda) TRY_STATUS(check_a_log(config_, i, weights));
    if (!has_attention_residuals()) continue;
    residual_weights_.push_back(
        {attention_residual_weight(weights.vector(TensorRole::AttentionResNorm),
                                   weights.vector(TensorRole::AttentionResProj)),
         attention_residual_weight(weights.vector(TensorRole::MlpResNorm),
                                   weights.vector(TensorRole::MlpResProj))});
  }
  if (has_attention_residuals())
    output_residual_weight_ = attention_residual_weight(globals_.vector(TensorRole::OutputResNorm),
                                                        globals_.vector(TensorRole::OutputResProj));
  return {};
}

Result<Activations> KimiModel::embed(Context& context, std::span<const TokenId> tokens) const {
  return embed_tokens(context, tokens, config_.hidden_size);
}

Status KimiModel::forward_layer(Context& context, size_t layer, std::span<const Segment> segments,
                                Activations& activations) const {
  const Workspace::Scope scope(context.workspace);
  TRY(const TrunkLease weights, context.trunk.layer(uint32_t(layer), context.cancel));
  const Rows p = activations.residual.view();  // the running vector
  const Rows u = context.workspace.take(p.count, p.width);
  const Rows update = context.workspace.take(p.count, p.width);
  const bool restart = has_attention_residuals() && layer % *config_.attn_res_block_size == 0;

  // The mixer reads the mix of everything so far; before the first block that is the embedding
  // itself.
  if (activations.blocks.empty()) {
    std::copy(p.data, p.data + p.count * p.width, u.data);
  } else {
    mix(context, activations, residual_weights_[layer].attention, u);
  }
  rms_norm(context, u, {weights->vector(TensorRole::InputNorm), config_.rms_norm_eps}, u);
  mixer(context, layer, *weights, segments, u, update);
  if (context.observer != nullptr) context.observer->on_mixer_output(layer, update);

  if (restart) {
    // The old running vector becomes a block, the raw one and not the mix; the sum starts afresh.
    activations.blocks.push_back(std::move(activations.residual));
    activations.residual = OwnedRows(update.count, update.width);
    std::copy(update.data, update.data + update.count * update.width,
              activations.residual.view().data);
  } else {
    add_rows(context, p, update, p);
  }
  const Rows running = activations.residual.view();

  if (has_attention_residuals()) {
    mix(context, activations, residual_weights_[layer].mlp, u);
  } else {
    std::copy(running.data, running.data + running.count * running.width, u.data);
  }
  rms_norm(context, u, {weights->vector(TensorRole::PostAttentionNorm), config_.rms_norm_eps}, u);
  TRY_STATUS(ffn(context, contract_.layers[layer].ffn, moe_, *weights, layer, u, update,
                 [&] { give_hint(context, layer + 1, activations); }));
  if (context.observer != nullptr) context.observer->on_ffn_output(layer, update);
  add_rows(context, running, update, running);
  if (context.observer != nullptr) context.observer->on_layer_output(layer, running);
  return context.cancel.check();
}

void KimiModel::mixer(Context& context, size_t layer, const LayerWeights& weights,
                      std::span<const Segment> segments, Rows rows, Rows out) const {
  const Workspace::Scope scope(context.workspace);
  if (contract_.layers[layer].mixer == MixerKind::Mla) {
    mla(context, config_, weights, layer, segments, rows, out);
  } else {
    kda(context, config_, weights, layer, segments, rows, out);
  }
}

void KimiModel::give_hint(Context& context, size_t layer, const Activations& activations) const {
  if (layer == layer_count() || !context.experts.wants_hints(uint32_t(layer))) return;
  const LayerWeights* const weights = context.trunk.find_resident(uint32_t(layer));
  if (weights == nullptr) return;
  const Rows running = activations.residual.view();
  const OwnedRows some(std::min(running.count, kHintRows), running.width);
  const Rows u = some.view();
  context.team.parallel_for(u.count, [&](size_t i) {
    if (has_attention_residuals()) {
      attention_residual_row(context, activations.blocks, running, residual_weights_[layer].mlp,
                             config_.rms_norm_eps, i, u.row(i));
    } else {
      std::copy_n(running.row(i), u.width, u.row(i));
    }
  });
  rms_norm(context, u, {weights->vector(TensorRole::PostAttentionNorm), config_.rms_norm_eps}, u);
  expect_experts(context, moe_, *weights, layer, u);
}

Status KimiModel::logits(Context& context, const Activations& activations,
                         std::span<const uint32_t> rows, Rows logits) const {
  const Workspace::Scope scope(context.workspace);
  CHECK(logits.count == rows.size() && logits.width == vocab_size());
  const Rows residual = activations.residual.view();
  // Only the rows that are asked for: of a long prefill that is one.
  const Rows final = context.workspace.take(rows.size(), residual.width);
  context.team.parallel_for(rows.size(), [&](size_t i) {
    const float* row = residual.row(rows[i]);
    if (has_attention_residuals()) {
      attention_residual_row(context, activations.blocks, residual, output_residual_weight_,
                             config_.rms_norm_eps, rows[i], final.row(i));
    } else {
      std::copy(row, row + residual.width, final.row(i));
    }
  });
  rms_norm(context, final, {globals_.vector(TensorRole::FinalNorm), config_.rms_norm_eps}, final);
  if (context.observer != nullptr) context.observer->on_final_norm(final);
  return project_logits(context, globals_.matrix(TensorRole::LmHead), final, logits);
}

void KimiModel::replay(Context& context, state::Transaction& transaction, size_t accepted) const {
  for (size_t layer = 0; layer < layer_count(); ++layer)
    if (contract_.layers[layer].mixer == MixerKind::Kda)
      kda_replay(context, config_, layer, transaction, accepted);
}

}  // namespace

Result<std::unique_ptr<Model>> open_kimi(const ModelContract& contract,
                                         const memory::Trunk& trunk) {
  std::unique_ptr<KimiModel> model = std::make_unique<KimiModel>(contract, trunk);
  TRY_STATUS(model->prepare(trunk));
  return std::unique_ptr<Model>(std::move(model));
}

state::Layout kimi_state_layout(const ModelContract& contract) {
  const KimiConfig& config = *contract.kimi();
  state::Layout layout;
  for (const LayerContract& layer : contract.layers) {
    if (layer.mixer == MixerKind::Kda) {
      layout.layers.push_back(kda_state_layout(config));
    } else {
      layout.layers.push_back(mla_state_layout(config));
    }
  }
  return layout;
}

uint64_t kimi_activation_bytes_per_row(const ModelContract& contract) {
  const KimiConfig& config = *contract.kimi();
  const uint64_t blocks = config.attn_res_block_size
                              ? (contract.layers.size() - 1) / *config.attn_res_block_size + 1
                              : 0;
  const uint64_t layer = std::max({kda_workspace_per_row(config), mla_workspace_per_row(config),
                                   moe_workspace_per_row(moe_shape(config)),
                                   3 * uint64_t{config.dense_intermediate_size}});
  return ((blocks + kVectorsOfARow) * config.hidden_size + layer) * sizeof(float);
}

memory::ExpertFunction kimi_expert_function(const KimiConfig& config) {
  return {.activation = config.activation,
          .situ_beta = config.situ_beta,
          .situ_linear_beta = config.situ_linear_beta};
}

}  // namespace deltafin::model
