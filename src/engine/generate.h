// A prompt into a sequence, and tokens out of it until something says stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/sampler.h"

namespace deltafin::engine {

// Where a generation left off, beside its sequence. Exactly one of the two is empty.
struct Continuation {
  // Known, but not yet part of the sequence: what an interrupt left of the prompt, or the last
  // token that was chosen.
  std::vector<TokenId> waiting;
  // Of the sequence's last position, from which the next token is chosen. [vocab_size]
  std::vector<float> logits;
};

struct GenerateRequest {
  std::vector<TokenId> prompt;       // appended to the sequence; empty only with `logits`
  std::vector<float> logits;         // Continuation::logits, used when there is no prompt
  uint64_t max_tokens = 0;           // 0: prefill only
  std::vector<TokenId> stop_tokens;  // end the answer and are not part of it
  SamplingParameters sampling;
  size_t prefill_rows = 0;  // rows per prefill pass; 0: Engine::prefill_rows()
};

// Interrupted: by a cancel. Stopped: by a RequestListener that had enough.
enum class StopReason : uint8_t { MaxTokens, StopToken, ContextFull, Interrupted, Stopped };
const char* name_of(StopReason reason);

struct PrefillProgress {
  size_t rows_done = 0;  // committed
  size_t rows_in_pass = 0;
  size_t rows_total = 0;
  size_t layers_done = 0;  // of the pass
  size_t layer_count = 0;

  double fraction() const {
    const double rows =
        double(rows_done) + double(rows_in_pass) * double(layers_done) / double(layer_count);
    return rows / double(rows_total);
  }
};

// Called on the engine thread.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  virtual void on_prefill(const PrefillProgress& /*progress*/) {}
  // `logits` is the row that produced `token`; the stop token is announced here too.
  virtual void on_token(TokenId /*token*/, std::span<const float> /*logits*/) {}
};

struct GenerationResult {
  std::vector<TokenId> tokens;  // without the stop token
  StopReason reason = StopReason::MaxTokens;
  std::chrono::nanoseconds prefill_time{0};
  std::chrono::nanoseconds decode_time{0};  // after the first token
  uint64_t decode_passes = 0;
  // A generation of the same sequence that is given this goes on as if there had been no end: it
  // gets `waiting` and then the next words as its prompt, or `logits`.
  Continuation next;
};

// Commits the prompt and every generated token but the last to `sequence`. A cancel is not an
// error: the result has what was generated until then. Errors: Usage (nothing to begin with, bad
// ids or parameters), Io, BadModel. The sequence then holds what was committed before, and engine
// and sequence stay usable.
Result<GenerationResult> generate(Engine& engine, Sequence& sequence,
                                  const GenerateRequest& request, GenerationListener& listener,
                                  const CancelToken& cancel);

}  // namespace deltafin::engine
