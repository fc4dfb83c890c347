#include "engine/pass.h"

#include <fmt/format.h>

#include <numeric>

#include "base/check.h"
#include "base/float_control.h"
#include "base/limits.h"

namespace deltafin::engine {

namespace {

Status check_request(const Engine& engine, const PassRequest& request) {
  CHECK(request.sequence != nullptr);
  if (request.tokens.empty())
    return fail(ErrorCode::Usage, "there is no token to compute: give at least one");
  if (request.mode == PassMode::Verify && request.tokens.size() > limits::kVerifyRows)
    return fail(ErrorCode::Usage, fmt::format("a verify pass of {} rows: at most {} are possible",
                                              request.tokens.size(), limits::kVerifyRows));
  TRY_STATUS(engine.check_tokens(request.tokens));
  const uint64_t end = request.sequence->position_count() + request.tokens.size();
  const uint64_t limit = engine.contract().max_positions;
  if (end > limit)
    return fail(ErrorCode::Usage,
                fmt::format("{} tokens do not fit: the model declares {} positions", end, limit));
  return {};
}

}  // namespace

Result<Pass> Pass::begin(Engine& engine, std::span<const PassRequest> requests) {
  CHECK(!requests.empty());
  for (const PassRequest& request : requests) TRY_STATUS(check_request(engine, request));
  Pass pass(engine);
  size_t logits_rows = 0;
  std::vector<TokenId> tokens;
  pass.parts_.reserve(requests.size());
  for (const PassRequest& request : requests) {
    const state::ReplayInputs replay =
        request.mode == PassMode::Verify ? state::ReplayInputs::Kept : state::ReplayInputs::Dropped;
    pass.parts_.push_back({.sequence = request.sequence,
                           .tokens = {request.tokens.begin(), request.tokens.end()},
                           .mode = request.mode,
                           .logits = request.logits,
                           .transaction = {request.sequence->state_, request.tokens.size(), replay},
                           .first_row = pass.row_count_,
                           .first_logits = logits_rows});
    tokens.insert(tokens.end(), request.tokens.begin(), request.tokens.end());
    pass.row_count_ += request.tokens.size();
    if (request.logits == LogitsOf::LastRow) logits_rows += 1;
    if (request.logits == LogitsOf::AllRows) logits_rows += request.tokens.size();
  }
  pass.logits_ = model::OwnedRows(logits_rows, engine.vocab_size());
  const CancelToken never;
  model::Context context = pass.context(never);
  TRY(pass.activations_, engine.model_->embed(context, tokens));
  return pass;
}

model::Context Pass::context(const CancelToken& cancel) const {
  CHECK(float_control_is_canonical());
  return {.team = engine_->team_,
          .kernels = engine_->kernels_,
          .trunk = *engine_->trunk_,
          .experts = *engine_->experts_,
          .workspace = engine_->workspace_,
          .cancel = cancel,
          .observer = engine_->observer_};
}

Status Pass::advance_layer(const CancelToken& cancel) {
  CHECK(!layers_finished());
  std::vector<model::Segment> segments;
  for (Part& part : parts_)
    segments.push_back({.transaction = &part.transaction, .first_row = part.first_row});
  model::Context here = context(cancel);
  const std::chrono::nanoseconds start = engine_->clock().now();
  engine_->layer_now_ = static_cast<uint32_t>(layers_done_);
  engine_->rows_now_ = static_cast<uint32_t>(row_count_);
  if (engine_->pressure_.is_short(start)) engine_->experts_->give_back();
  engine_->workspace_.reserve(row_count_ * engine_->model_->activation_bytes_per_row());
  Status status = engine_->model_->forward_layer(here, layers_done_, segments, activations_);
  engine_->layer_times_[layers_done_] += engine_->clock().now() - start;
  if (status) ++layers_done_;
  return status;
}

Status Pass::compute_logits(size_t request, size_t first, model::Rows logits,
                            const CancelToken& cancel) {
  CHECK(layers_finished() && !finished_);
  const Part& part = parts_[request];
  CHECK(first + logits.count <= part.tokens.size());
  std::vector<uint32_t> rows(logits.count);
  std::iota(rows.begin(), rows.end(), uint32_t(part.first_row + first));
  model::Context here = context(cancel);
  return engine_->model_->logits(here, activations_, rows, logits);
}

Status Pass::finish(const CancelToken& cancel) {
  CHECK(layers_finished() && !finished_);
  std::vector<uint32_t> rows;
  for (const Part& part : parts_) {
    const size_t count = part.tokens.size();
    if (part.logits == LogitsOf::LastRow) rows.push_back(uint32_t(part.first_row + count - 1));
    if (part.logits == LogitsOf::AllRows)
      for (size_t i = 0; i < count; ++i) rows.push_back(uint32_t(part.first_row + i));
  }
  if (!rows.empty()) {
    model::Context here = context(cancel);
    TRY_STATUS(engine_->model_->logits(here, activations_, rows, logits_.view()));
  }
  finished_ = true;
  ++engine_->passes_;
  engine_->rows_ += row_count_;
  return {};
}

std::span<const float> Pass::logits(size_t request, size_t row) const {
  CHECK(finished_);
  const Part& part = parts_[request];
  CHECK(part.logits != LogitsOf::None && row < part.tokens.size());
  CHECK(part.logits == LogitsOf::AllRows || row + 1 == part.tokens.size());
  const size_t index = part.logits == LogitsOf::AllRows ? row : 0;
  const model::Rows view = logits_.view();
  return {view.row(part.first_logits + index), view.width};
}

void Pass::commit(size_t request, size_t accepted) {
  CHECK(finished_);
  Part& part = parts_[request];
  CHECK(!part.committed);
  part.committed = true;
  if (accepted > 0 && accepted < part.tokens.size()) {
    CHECK(part.mode == PassMode::Verify);
    const CancelToken never;
    model::Context here = context(never);
    engine_->model_->replay(here, part.transaction, accepted);
  }
  part.transaction.commit(accepted);
  part.sequence->tokens_.insert(part.sequence->tokens_.end(), part.tokens.begin(),
                                part.tokens.begin() + ptrdiff_t(accepted));
}

Result<Pass> run_pass(Engine& engine, std::span<const PassRequest> requests,
                      const CancelToken& cancel) {
  TRY(Pass pass, Pass::begin(engine, requests));
  while (!pass.layers_finished()) TRY_STATUS(pass.advance_layer(cancel));
  TRY_STATUS(pass.finish(cancel));
  return pass;
}

}  // namespace deltafin::engine
