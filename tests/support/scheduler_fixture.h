// What requests of a scheduler get, and what they get alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/scheduler.h"

namespace deltafin::test {

// Everything a request's listener hears.
struct Heard {
  struct Answer {
    std::vector<TokenId> tokens;  // with the stop token
    std::vector<float> logits;    // a row each
    std::optional<engine::StopReason> reason;
  };
  std::optional<uint64_t> cached;
  std::vector<double> fractions;
  std::vector<float> prompt_logits;
  std::map<uint32_t, Answer> answers;
  std::optional<Status> status;

  bool has_ended() const { return status.has_value(); }
  size_t token_count() const;
};

class HearingListener final : public engine::RequestListener {
 public:
  void on_start(uint64_t cached_tokens) override;
  void on_prefill(const engine::PrefillProgress& progress) override;
  void on_prompt_logits(size_t position, std::span<const float> logits) override;
  bool on_token(uint32_t answer, TokenId token, std::span<const float> logits) override;
  void on_answer_end(uint32_t answer, engine::StopReason reason) override;
  void on_end(const Status& status) override;

  Heard heard;
  std::function<bool(uint32_t answer, TokenId token)> goes_on;  // may be empty
};

// The same request by engine::generate(), an answer after the other, on sequences of its own, where
// answers end at `context` positions if the model goes further. Throws on errors.
Heard alone(engine::Engine& engine, const engine::ScheduledRequest& request, uint64_t context = 0);

// Bit for bit, but for what was cached and the progress.
void expect_same(const Heard& found, const Heard& expected, const std::string& what);
// As far as it went: what was heard is the beginning of the same.
void expect_beginning_of(const Heard& found, const Heard& expected, const std::string& what);

}  // namespace deltafin::test
