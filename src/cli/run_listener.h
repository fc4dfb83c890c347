// Watches a generation and hands each token on: to standard output, to the event log, to the
// digest.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "audit/digest.h"
#include "base/cancel.h"
#include "cli/chat_output.h"
#include "cli/events.h"
#include "cli/progress.h"
#include "cli/standard_output.h"
#include "cli/token_text.h"
#include "engine/generate.h"

namespace deltafin::cli {

class RunListener final : public engine::GenerationListener {
 public:
  // All must outlive the listener. `output` is null when nothing is printed as it comes. `cancel`
  // is set when nobody can take more.
  struct Wiring {
    const engine::Engine& engine;
    const text::Tokenizer* tokenizer;  // null: ids are printed
    const std::vector<TokenId>& stop_tokens;
    ChatOutput* chat;  // null: the text as it comes
    StandardOutput* output;
    EventLog& events;
    audit::LogitsDigest* digest;  // null when not asked for
    CancelToken& cancel;
  };
  // Elapsed times count from now.
  explicit RunListener(const Wiring& wiring);

  void on_prefill(const engine::PrefillProgress& progress) override;
  void on_token(TokenId token, std::span<const float> logits) override;
  // The generation is over, well or not: ends the text and the progress.
  void finish();

  std::chrono::nanoseconds elapsed() const { return wiring_.engine.clock().now() - start_; }
  // All the text so far; in a chat, of the answer.
  const std::string& text() const { return all_text_; }
  uint64_t token_count() const { return token_count_; }
  std::optional<TokenId> stop_token() const { return stop_token_; }
  // The counters when the first token was chosen.
  const std::optional<engine::EngineCounters>& after_prefill() const { return after_prefill_; }

 private:
  void emit(const std::string& text);
  std::string text_of(TokenId token);
  void note_prefill_done();

  Wiring wiring_;
  std::chrono::nanoseconds start_;
  std::chrono::nanoseconds last_progress_event_;
  ProgressMeter meter_;
  TokenText token_text_;
  std::string all_text_;
  uint64_t token_count_ = 0;
  uint64_t prompt_count_ = 0;
  std::optional<TokenId> stop_token_;
  std::optional<engine::EngineCounters> after_prefill_;
};

}  // namespace deltafin::cli
