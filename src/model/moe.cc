#include "model/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "model/feed_forward.h"

namespace deltafin::model {

using checkpoint::KimiConfig;
using checkpoint::TensorRole;
using memory::LayerWeights;
using numerics::Route;

namespace {

size_t expert_width(const KimiConfig& config) {
  return config.latent_size ? *config.latent_size : config.hidden_size;
}

// routes[row, top_k] in router order.
Result<std::vector<Route>> choose_all(Context& context, const KimiConfig& config,
                                      const LayerWeights& weights, size_t layer, PackedRows& rows) {
  const numerics::RouterRule rule = router_rule(config);
  const Rows logits = linear(context, weights.matrix(TensorRole::Router), rows);
  TRY_STATUS(context.cancel.check());
  const std::span<const float> bias = weights.has(TensorRole::RouterBias)
                                          ? weights.vector(TensorRole::RouterBias)
                                          : std::span<const float>();
  std::vector<Route> routes(logits.count * rule.top_k);
  std::atomic<bool> finite = true;
  context.team.parallel_for(logits.count, [&](size_t row) {
    thread_local std::vector<float> scratch;
    if (!numerics::choose_routes(context.kernels, rule, {logits.row(row), logits.width}, bias,
                                 scratch, std::span(routes).subspan(row * rule.top_k, rule.top_k)))
      finite.store(false, std::memory_order_relaxed);
  });
  if (!finite.load(std::memory_order_relaxed)) {
    return fail(
        ErrorCode::BadModel,
        fmt::format("layer {}: a router score is not finite; the weights of this layer or of "
                    "one before it are damaged: verify the checkpoint's files",
                    layer));
  }
  return routes;
}

// sum over the row's experts of weight x output: in router order from +0, multiply, then add.
void combine(Context& context, std::span<const Route> routes, size_t top_k, Rows edge_outputs,
             Rows out) {
  context.team.parallel_for(out.count, [&](size_t row) {
    float* sum = out.row(row);
    std::fill(sum, sum + out.width, 0.0f);
    for (size_t i = 0; i < top_k; ++i) {
      const size_t edge = row * top_k + i;
      context.kernels.multiply_add(routes[edge].weight, edge_outputs.row(edge), sum, out.width);
    }
  });
}

Result<Rows> routed_experts(Context& context, const KimiConfig& config, size_t layer,
                            std::span<const Route> routes, Rows inputs) {
  const size_t top_k = config.experts_per_token;
  std::vector<memory::ExpertEdge> edges(routes.size());
  for (size_t i = 0; i < routes.size(); ++i)
    edges[i] = {.row = uint32_t(i / top_k), .expert = routes[i].expert};
  const Rows edge_outputs = context.workspace.take(edges.size(), inputs.width);
  TRY_STATUS(context.experts.run(
      {.layer = uint32_t(layer), .edges = edges, .rows = inputs.data, .row_count = inputs.count},
      {edge_outputs.data, edges.size() * inputs.width}, context.cancel));
  const Rows sum = context.workspace.take(inputs.count, inputs.width);
  combine(context, routes, top_k, edge_outputs, sum);
  return sum;
}

}  // namespace

numerics::RouterRule router_rule(const KimiConfig& config) {
  return {.top_k = config.experts_per_token,
          .score = config.router_score == checkpoint::RouterScore::Sigmoid
                       ? numerics::RouterScore::Sigmoid
                       : numerics::RouterScore::Softmax,
          .renormalize = config.router_renormalize,
          .scale = config.router_scale,
          .group_count = config.router_group_count,
          .groups_kept = config.router_groups_kept};
}

memory::ExpertFunction expert_function(const KimiConfig& config) {
  return {.activation = config.activation,
          .situ_beta = config.situ_beta,
          .situ_linear_beta = config.situ_linear_beta};
}

uint64_t moe_workspace_per_row(const KimiConfig& config) {
  const uint64_t width = expert_width(config), hidden = config.hidden_size;
  const uint64_t shared = uint64_t{config.shared_expert_count} * config.moe_intermediate_size;
  return config.expert_count + (uint64_t{config.experts_per_token} + 4) * width + 3 * shared +
         3 * hidden + 512;
}

Status moe(Context& context, const KimiConfig& config, const LayerWeights& weights, size_t layer,
           Rows rows, Rows out) {
  PackedRows packed(context, rows);
  TRY(const std::vector<Route> routes, choose_all(context, config, weights, layer, packed));
  if (context.observer != nullptr) context.observer->on_routes(layer, routes);

  if (config.latent_size) {
    const Rows latent = linear(context, weights.matrix(TensorRole::LatentDown), packed);
    TRY(Rows sum, routed_experts(context, config, layer, routes, latent));
    if (config.latent_norm)
      rms_norm(context, sum, weights.vector(TensorRole::LatentNorm), config.rms_norm_eps, sum);
    PackedRows packed_sum(context, sum);
    linear(context, weights.matrix(TensorRole::LatentUp), packed_sum, out);
  } else {
    TRY(const Rows sum, routed_experts(context, config, layer, routes, rows));
    std::copy(sum.data, sum.data + sum.count * sum.width, out.data);
  }

  if (config.shared_expert_count > 0) {
    const Rows shared = context.workspace.take(rows.count, out.width);
    feed_forward(context,
                 {weights.matrix(TensorRole::SharedGate), weights.matrix(TensorRole::SharedUp),
                  weights.matrix(TensorRole::SharedDown)},
                 expert_function(config), packed, shared);
    add_rows(context, out, shared, out);
  }
  return {};
}

}  // namespace deltafin::model
