#include "engine/generate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/pass.h"

namespace deltafin::engine {

namespace {

// One generation in progress.
class Generation {
 public:
  Generation(Engine& engine, Sequence& sequence, const GenerateRequest& request,
             GenerationListener& listener, const CancelToken& cancel)
      : engine_(engine),
        sequence_(sequence),
        request_(request),
        listener_(listener),
        cancel_(cancel),
        sampler_(engine.kernels(), request.sampling) {}

  Result<GenerationResult> run() {
    const std::chrono::nanoseconds start = engine_.clock().now();
    const uint64_t base = sequence_.position_count();
    Status status;
    if (request_.prompt.empty()) {
      accept(request_.logits);
    } else {
      status = prefill();
    }
    const std::chrono::nanoseconds prefilled = engine_.clock().now();
    result_.prefill_time = prefilled - start;
    while (status && !ended_) status = decode_one();
    result_.decode_time = engine_.clock().now() - prefilled;
    if (!status && status.error().code == ErrorCode::Cancelled) {
      result_.reason = StopReason::Interrupted;
      status = {};
    }
    if (!status) return std::unexpected(std::move(status).error());
    keep_waiting_tokens(sequence_.position_count() - base);
    return std::move(result_);
  }

 private:
  Status prefill() {
    const size_t total = request_.prompt.size();
    const size_t rows = request_.prefill_rows > 0 ? request_.prefill_rows : engine_.prefill_rows();
    const uint64_t base = sequence_.position_count();
    for (size_t done = 0; done < total;) {
      const size_t count = std::min(rows, total - done);
      const bool last = done + count == total;
      const PassRequest request{.sequence = &sequence_,
                                .tokens = std::span(request_.prompt).subspan(done, count),
                                .mode = PassMode::Prefill,
                                .logits = last ? LogitsOf::LastRow : LogitsOf::None};
      TRY(Pass pass, Pass::begin(engine_, std::span(&request, 1)));
      while (!pass.layers_finished()) {
        TRY_STATUS(pass.advance_layer(cancel_));
        listener_.on_prefill({.rows_done = done,
                              .rows_in_pass = count,
                              .rows_total = total,
                              .layers_done = pass.layers_done(),
                              .layer_count = engine_.layer_count()});
      }
      TRY_STATUS(pass.finish(cancel_));
      pass.commit(0, count);
      done += count;
      if (last) accept(pass.logits(0, count - 1));
    }
    CHECK(sequence_.position_count() == base + total);
    return {};
  }

  // `done` of the prompt and the answer have become part of the sequence.
  void keep_waiting_tokens(size_t done) {
    std::vector<TokenId>& waiting = result_.next.waiting;
    waiting = request_.prompt;
    waiting.insert(waiting.end(), result_.tokens.begin(), result_.tokens.end());
    waiting.erase(waiting.begin(), waiting.begin() + ptrdiff_t(done));
    CHECK(waiting.empty() != result_.next.logits.empty());
  }

  Status decode_one() {
    const PassRequest request{.sequence = &sequence_,
                              .tokens = std::span(&result_.tokens.back(), 1),
                              .mode = PassMode::Prefill,
                              .logits = LogitsOf::LastRow};
    TRY(Pass pass, run_pass(engine_, std::span(&request, 1), cancel_));
    pass.commit(0, 1);
    ++result_.decode_passes;
    accept(pass.logits(0, 0));
    return {};
  }

  // Chooses the next token and decides whether it was the last.
  void accept(std::span<const float> logits) {
    if (request_.max_tokens == 0) return end_before_a_token(StopReason::MaxTokens, logits);
    const TokenId token = sampler_.choose(logits, sequence_.position_count(), sequence_.tokens());
    listener_.on_token(token, logits);
    if (std::ranges::find(request_.stop_tokens, token) != request_.stop_tokens.end())
      return end_before_a_token(StopReason::StopToken, logits);
    result_.tokens.push_back(token);
    if (result_.tokens.size() >= request_.max_tokens) return end(StopReason::MaxTokens);
    if (sequence_.position_count() >= engine_.contract().max_positions)
      return end(StopReason::ContextFull);
  }

  // The sequence is complete as it is; a continuation chooses the next token.
  void end_before_a_token(StopReason reason, std::span<const float> logits) {
    result_.next.logits.assign(logits.begin(), logits.end());
    end(reason);
  }

  void end(StopReason reason) {
    result_.reason = reason;
    ended_ = true;
  }

  Engine& engine_;
  Sequence& sequence_;
  const GenerateRequest& request_;
  GenerationListener& listener_;
  const CancelToken& cancel_;
  Sampler sampler_;
  GenerationResult result_;
  bool ended_ = false;
};

}  // namespace

const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::MaxTokens:
      return "max_tokens";
    case StopReason::StopToken:
      return "stop_token";
    case StopReason::ContextFull:
      return "context_full";
    case StopReason::Interrupted:
      return "interrupted";
    case StopReason::Stopped:
      return "stopped";
  }
  return "";
}

Result<GenerationResult> generate(Engine& engine, Sequence& sequence,
                                  const GenerateRequest& request, GenerationListener& listener,
                                  const CancelToken& cancel) {
  if (request.prompt.empty() && request.logits.empty())
    return fail(ErrorCode::Usage, "the prompt has no token: give at least one character or id");
  CHECK(!request.prompt.empty() || request.logits.size() == engine.vocab_size());
  CHECK(request.logits.empty() || sequence.position_count() > 0);
  TRY_STATUS(validate(request.sampling, engine.vocab_size()));
  return Generation(engine, sequence, request, listener, cancel).run();
}

}  // namespace deltafin::engine
