// Many requests through one engine: the decode rows of all of them in one pass, prompts that wait
// together in one pass, and a decode pass overtakes a prompt's pass at the borders of its layers.
// Speaks only tokens.
//
// What a request gets is, bit for bit, what it gets alone: rows do not see each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "base/token.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "engine/sampler.h"

namespace deltafin::engine {

// What becomes of one request. Called on the engine thread, from Scheduler::step(); may call
// cancel() and submit(), but not step(). After on_end() nothing more comes.
class RequestListener {
 public:
  virtual ~RequestListener() = default;

  // In front of the first pass. So many tokens of the prompt need not be read: a state was kept.
  virtual void on_start(uint64_t /*cached_tokens*/) {}
  // Of the tokens that are not cached. Every layer of a pass, and of every pass of a long prompt.
  virtual void on_prefill(const PrefillProgress& /*progress*/) {}
  // Only with ScheduledRequest::prompt_logits, in order: the row of prompt[position], which says
  // how probable prompt[position + 1] was. [vocab_size]
  virtual void on_prompt_logits(size_t /*position*/, std::span<const float> /*logits*/) {}
  // `logits` is the row that produced `token`; a stop token is announced too. False ends the answer
  // (a stop string was found): on_answer_end(Stopped) follows.
  virtual bool on_token(uint32_t answer, TokenId token, std::span<const float> logits) = 0;
  // Without tokens to write (max_tokens 0) every answer ends with MaxTokens.
  virtual void on_answer_end(uint32_t answer, StopReason reason) = 0;
  // The last call. An error: the request failed, or was cancelled (ErrorCode::Cancelled); what was
  // announced before stays true.
  virtual void on_end(const Status& status) = 0;
};

struct ScheduledRequest {
  std::vector<TokenId> prompt = {};  // at least one
  uint64_t max_tokens = 0;           // of each answer; 0: only the prompt is read
  std::vector<TokenId> stop_tokens = {};
  SamplingParameters sampling = {};  // `choice` is the number of the answer
  // Which share the prompt's state. More than SchedulerOptions::sequences are written one after the
  // other.
  uint32_t answers = 1;
  bool prompt_logits = false;
  // Lengths of beginnings of the prompt, ascending, whose states are worth keeping for later
  // prompts; the whole prompt and prompt with answer are kept anyway. A border ends a pass: what
  // comes after it is read in the next one.
  std::vector<size_t> borders = {};
};

class StateDirectory;

struct SchedulerOptions {
  // Computed at a time, an answer each; further requests wait in order of arrival. While answers of
  // one request wait for others, the state of its prompt is held beside them.
  uint32_t sequences = 1;
  // Positions of a sequence at most; 0: what the model declares. The last token of an answer takes
  // no position, as in generate().
  uint64_t context = 0;
  uint64_t kept_state_bytes = 0;  // of committed states that are kept for later prompts
  // Where those that end a request or lie at its borders are saved too, and where longer ones than
  // those in memory are looked for. While there is other work, saving takes a tenth of the time at
  // most; what memory has dropped by then is not saved. Must outlive the scheduler. Null: nowhere.
  StateDirectory* state_directory = nullptr;
};

using RequestId = uint64_t;

struct SchedulerCounters {
  uint64_t waiting = 0, running = 0;  // requests
  uint64_t prompt_tokens = 0;         // of requests that were begun
  uint64_t cached_tokens = 0;         // of those, not read because a state was kept
  uint64_t generated_tokens = 0;
  uint64_t decode_passes = 0, prefill_passes = 0;
  uint64_t kept_states = 0, kept_state_bytes = 0;  // in memory
};

class Scheduler {
 public:
  // `engine` must outlive it, and nobody else runs passes on it meanwhile.
  Scheduler(Engine& engine, SchedulerOptions options);
  ~Scheduler();  // requests that have not ended hear nothing more

  // From any thread. Errors: Usage, for a request that can never run: ids outside the vocabulary,
  // parameters, a prompt of more tokens than the context. The listener then hears nothing.
  Result<RequestId> submit(ScheduledRequest request, std::shared_ptr<RequestListener> listener);
  // From any thread, at any time; with a request that has ended nothing happens. Work that nobody
  // else needs stops between two tiles; the listener hears of it in the next step.
  void cancel(RequestId id);
  // Some work: a layer of a prompt's pass, a decode pass, or a state saved. False: there is nothing
  // to do. What is submitted between two steps is read together.
  bool step();

  SchedulerCounters snapshot() const;  // on the engine thread

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace deltafin::engine
