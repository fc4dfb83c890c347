// One HTTP request that generates: from tokens, as the scheduler announces them, to OpenAI's
// objects in a Job.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/scheduler.h"
#include "numerics/kernels.h"
#include "serve/answer_text.h"
#include "serve/api/generation_response.h"
#include "serve/job.h"

namespace deltafin::serve {

struct GenerationSetup {
  ResponseHead head;
  std::optional<text::ChannelSetup> channels;  // of a chat; empty: a completion
  std::vector<std::vector<TokenId>> prompts;   // each has `answers` choices
  uint32_t answers = 1;
  std::vector<TokenId> stop_tokens;
  text::StopStrings stops;
  bool include_usage = false;
  bool echo = false;
  std::optional<uint32_t> logprobs;
  std::optional<std::chrono::milliseconds> timeout;
};

// Lives in a shared_ptr: the listeners, which the engine's thread calls, hold it. Thread-safe once
// it is set up.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // The references must outlive it. Errors: as make_chat_text.
  static Result<std::shared_ptr<Generation>> create(GenerationSetup setup, std::shared_ptr<Job> job,
                                                    const text::Tokenizer& tokenizer,
                                                    const numerics::Kernels& kernels,
                                                    const Clock& clock);

  // One for each prompt, to be given to the scheduler.
  std::vector<std::shared_ptr<engine::RequestListener>> create_listeners();
  bool wants_prompt_logits() const { return setup_.echo && setup_.logprobs; }
  // What still runs of it is to be cancelled: called when one prompt has failed, or too much time
  // has passed, on the thread that finds out. Before the first call to a listener.
  void on_give_up(std::function<void()> callback) { give_up_ = std::move(callback); }

  // A few times a second: keeps streams alive, looks at the time. The client is answered at once
  // when that is over, whatever the engine is doing.
  void tick();

 private:
  class Listener;
  struct Choice {
    std::unique_ptr<AnswerText> text;
    ChatChoice whole;                // of a completion, `content` is the text
    std::vector<TokenLogprob> held;  // of tokens whose text may not be shown yet
    size_t offset = 0;               // characters of text so far
    bool begun = false;              // in a stream
    bool ended = false;
  };

  Generation(GenerationSetup setup, std::shared_ptr<Job> job, const text::Tokenizer& tokenizer,
             const numerics::Kernels& kernels, const Clock& clock);

  // All but the last under the lock.
  void on_start(size_t prompt, uint64_t cached);
  void on_prompt_logits(size_t prompt, size_t position, std::span<const float> logits);
  bool on_token(size_t choice, TokenId token, std::span<const float> logits);
  void on_answer_end(size_t choice, engine::StopReason reason);
  void on_prompt_end(size_t prompt, const Status& status);

  bool is_chat() const { return setup_.channels.has_value(); }
  void begin(size_t prompt);
  TokenLogprob logprob_of(TokenId token, std::span<const float> logits) const;
  void emit(size_t index, TextPiece piece, std::optional<FinishReason> finish);
  void finish();
  std::string sign(std::chrono::nanoseconds now) const;
  void give_up(std::unique_lock<std::mutex> lock, const ApiError& error);

  GenerationSetup setup_;
  std::shared_ptr<Job> job_;
  const text::Tokenizer& tokenizer_;
  const numerics::Kernels& kernels_;
  const Clock& clock_;
  std::function<void()> give_up_;

  std::mutex mutex_;  // of everything below
  std::vector<Choice> choices_;
  std::vector<std::vector<TokenLogprob>> prompt_logprobs_;  // of each prompt
  Usage usage_;
  size_t open_prompts_;
  bool over_ = false;

  std::chrono::nanoseconds arrived_, last_sign_;
  std::optional<std::chrono::nanoseconds> prefill_began_;
  engine::PrefillProgress prefill_{};
  bool generating_ = false;
};

}  // namespace deltafin::serve
