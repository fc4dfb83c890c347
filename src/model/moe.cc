#include "model/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "model/feed_forward.h"

namespace deltafin::model {

using checkpoint::TensorRole;
using memory::LayerWeights;
using numerics::Route;

namespace {

// routes[row, top_k] in router order.
Result<std::vector<Route>> choose_all(const Context& context, const numerics::RouterRule& rule,
                                      const LayerWeights& weights, size_t layer, Rows logits) {
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

// sum[i]: the routed experts of row i, combined.
Status run_experts(Context& context, size_t top_k, size_t layer, std::span<const Route> routes,
                   Rows inputs, Rows sum, const std::function<void()>& meanwhile) {
  std::vector<memory::ExpertEdge> edges(routes.size());
  for (size_t i = 0; i < routes.size(); ++i)
    edges[i] = {.row = uint32_t(i / top_k), .expert = routes[i].expert};
  const Rows edge_outputs = context.workspace.take(edges.size(), inputs.width);
  TRY_STATUS(context.experts.run(
      {.layer = uint32_t(layer), .edges = edges, .rows = inputs.data, .row_count = inputs.count},
      {edge_outputs.data, edges.size() * inputs.width}, context.cancel, meanwhile));
  combine(context, routes, top_k, edge_outputs, sum);
  return {};
}

// out[i] = Shared(x).
void shared_expert(Context& context, const MoeShape& shape, const LayerWeights& weights,
                   PackedRows& rows, Rows out) {
  feed_forward(context,
               {weights.matrix(TensorRole::SharedGate), weights.matrix(TensorRole::SharedUp),
                weights.matrix(TensorRole::SharedDown)},
               shape.function, rows, out);
}

// out += shared, times its gate where it has one. `gate` [rows, 1] is overwritten.
void add_shared_expert(Context& context, const MoeShape& shape, Rows shared, Rows gate, Rows out) {
  if (!shape.shared_gate) return add_rows(context, out, shared, out);
  context.team.parallel_for(out.count, [&](size_t i) {
    context.kernels.elementary(numerics::Elementary::Sigmoid, gate.row(i), gate.row(i), 1);
    context.kernels.multiply_add(*gate.row(i), shared.row(i), out.row(i), out.width);
  });
}

}  // namespace

uint64_t moe_workspace_per_row(const MoeShape& shape) {
  return shape.expert_count + (uint64_t{shape.router.top_k} + 4) * shape.expert_width +
         3 * uint64_t{shape.shared_width} + 3 * uint64_t{shape.hidden_size} + 512;
}

Status moe(Context& context, const MoeShape& shape, const LayerWeights& weights, size_t layer,
           Rows rows, Rows out, const std::function<void()>& meanwhile) {
  PackedRows packed(context, rows);
  const auto take = [&](size_t width) { return context.workspace.take(rows.count, width); };
  const Rows scores = take(shape.expert_count), shared_gate = take(shape.shared_gate ? 1 : 0);
  const Rows latent = shape.latent ? take(shape.expert_width) : rows;
  std::vector<Projection> projections = {{weights.matrix(TensorRole::Router), scores}};
  if (shape.latent) projections.push_back({weights.matrix(TensorRole::LatentDown), latent});
  if (shape.shared_gate)
    projections.push_back({weights.matrix(TensorRole::SharedExpertGate), shared_gate});
  linear(context, projections, packed);
  TRY(const std::vector<Route> routes, choose_all(context, shape.router, weights, layer, scores));
  if (context.observer != nullptr) context.observer->on_routes(layer, routes);

  const Rows sum = shape.latent ? take(shape.expert_width) : out;
  const Rows shared = take(shape.shared_width > 0 ? out.width : 0);
  const auto while_reading = [&] {
    if (shape.shared_width > 0) shared_expert(context, shape, weights, packed, shared);
    meanwhile();
  };
  TRY_STATUS(run_experts(context, shape.router.top_k, layer, routes, latent, sum, while_reading));
  if (shape.latent) {
    if (shape.latent_norm)
      rms_norm(context, sum, {weights.vector(TensorRole::LatentNorm), shape.latent_norm_epsilon},
               sum);
    PackedRows packed_sum(context, sum);
    linear(context, weights.matrix(TensorRole::LatentUp), packed_sum, out);
  }
  if (shape.shared_width > 0) add_shared_expert(context, shape, shared, shared_gate, out);
  return {};
}

Status ffn(Context& context, checkpoint::FfnKind kind, const MoeShape& shape,
           const LayerWeights& weights, size_t layer, Rows rows, Rows out,
           const std::function<void()>& meanwhile) {
  const Workspace::Scope scope(context.workspace);
  if (kind == checkpoint::FfnKind::Moe)
    return moe(context, shape, weights, layer, rows, out, meanwhile);
  PackedRows packed(context, rows);
  feed_forward(context,
               {weights.matrix(TensorRole::MlpGate), weights.matrix(TensorRole::MlpUp),
                weights.matrix(TensorRole::MlpDown)},
               shape.function, packed, out);
  return {};
}

void expect_experts(Context& context, const MoeShape& shape, const LayerWeights& weights,
                    size_t layer, Rows rows) {
  const Workspace::Scope scope(context.workspace);
  PackedRows packed(context, rows);
  const Rows scores = context.workspace.take(rows.count, shape.expert_count);
  linear(context, weights.matrix(TensorRole::Router), packed, scores);
  const Result<std::vector<Route>> routes =
      choose_all(context, shape.router, weights, layer, scores);
  if (!routes) return;  // whoever needs the scores will say what is wrong
  // A row's best are the likeliest to be chosen again, and what many rows may need is worth more.
  std::vector<uint32_t> points(shape.expert_count), experts;
  for (size_t i = 0; i < routes->size(); ++i) {
    const uint32_t expert = (*routes)[i].expert;
    if (points[expert] == 0) experts.push_back(expert);
    points[expert] += uint32_t(shape.router.top_k - i % shape.router.top_k);
  }
  std::ranges::sort(experts, [&](uint32_t a, uint32_t b) {
    return points[a] != points[b] ? points[a] > points[b] : a < b;
  });
  context.experts.expect(uint32_t(layer), experts);
}

}  // namespace deltafin::model
