// One request of the scheduler on its way: its prompt, then its answers. Knows nothing of others.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/generate.h"
#include "engine/kept_states.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"

namespace deltafin::engine {

// An answer that is being written. Must not move while a pass is open on its sequence.
struct Answer {
  uint32_t number = 0;
  Sequence sequence;
  Sampler sampler;
  TokenId next = 0;        // chosen, but not yet part of the sequence
  uint64_t generated = 0;  // tokens, with `next`
  bool alone = false;      // its next pass is to have no other row
  uint64_t last_pass = 0;  // the scheduler's number of it
  bool has_ended = false;
  std::vector<float> end_logits = {};  // when it ended in front of a token: they choose the next

  // Of the sequence as it is.
  Continuation continuation() const;
};

class Job {
 public:
  Job(RequestId id, ScheduledRequest request, std::shared_ptr<RequestListener> listener,
      uint64_t context)
      : id_(id), request_(std::move(request)), listener_(std::move(listener)), context_(context) {}

  RequestId id() const { return id_; }
  const ScheduledRequest& request() const { return request_; }

  // --- the prompt ---
  bool has_begun() const { return prompt_.has_value() || prompt_is_read(); }
  bool prompt_is_read() const { return rows_read_ == request_.prompt.size(); }
  // From `sequence`, which has the first tokens of the prompt; all of them only with `logits`.
  void begin(Sequence sequence, std::vector<float> logits);
  uint64_t cached_tokens() const { return cached_; }
  Sequence& prompt() { return *prompt_; }
  // What is to be read next, up to a border or the end; and what that would be behind the first
  // `rows_read` tokens.
  std::span<const TokenId> unread_stretch() const { return stretch_behind(rows_read_); }
  std::span<const TokenId> stretch_behind(size_t rows_read) const;
  void report_layer(size_t rows_in_pass, size_t layers_done, size_t layer_count);
  // Of the rows of the stretch [unread, unread + row_count): how many were announced already.
  size_t scored_rows() const { return rows_scored_ > rows_read_ ? rows_scored_ - rows_read_ : 0; }
  void score(std::span<const float> logits);
  // They are committed. `logits`: of the last one.
  void rows_were_read(size_t row_count, std::span<const float> logits);
  // What is read is worth keeping for later prompts.
  bool is_at_border() const;
  // The end of a prompt is followed by that of an answer, which is what is saved.
  Lasting lasting() const;
  // Of what is read of the prompt.
  Continuation after_prompt() const;
  bool alone = false;  // its next pass is to have no other prompt's rows

  // --- the answers ---
  bool has_unstarted_answers() const;
  // Starts the next one and chooses its first token, by which it may already have ended.
  Answer& start_answer(const numerics::Kernels& kernels);
  std::list<Answer>& answers() { return answers_; }  // those that were started
  // Chooses a token by the logits of the answer's last row.
  void accept(Answer& answer, std::span<const float> logits);
  void remove_ended_answers();
  // Nothing is left to do but to end it.
  bool is_complete() const;

  // --- the end ---
  bool has_ended() const { return listener_ == nullptr; }
  void end(const Status& status);

  // Sequences that it computes now, and at most from now on. One that has ended while a pass is
  // open on its prompt still has that.
  uint64_t sequences_held() const;
  uint64_t sequences_wanted() const;

 private:
  void end_answer(Answer& answer, StopReason reason);
  uint64_t answer_count() const { return request_.max_tokens == 0 ? 0 : request_.answers; }

  RequestId id_;
  ScheduledRequest request_;
  std::shared_ptr<RequestListener> listener_;  // null: ended
  uint64_t context_;

  std::optional<Sequence> prompt_;  // until the last answer has taken it
  std::vector<float> logits_;       // of its last position
  size_t cached_ = 0, rows_read_ = 0, rows_scored_ = 0;
  std::list<Answer> answers_;
  uint32_t answers_started_ = 0;
};

}  // namespace deltafin::engine
