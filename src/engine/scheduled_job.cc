#include "engine/scheduled_job.h"

#include <algorithm>

#include "base/check.h"

namespace deltafin::engine {

Continuation Answer::continuation() const {
  if (!end_logits.empty()) return {.waiting = {}, .logits = end_logits};
  return {.waiting = {next}, .logits = {}};
}

// --------------------------------------------------------------------------------- the prompt ---

void Job::begin(Sequence sequence, std::vector<float> logits) {
  CHECK(!has_begun());
  rows_read_ = cached_ = sequence.position_count();
  CHECK(rows_read_ < request_.prompt.size() || !logits.empty());
  prompt_ = std::move(sequence);
  logits_ = std::move(logits);
  listener_->on_start(cached_);
}

std::span<const TokenId> Job::stretch_behind(size_t rows_read) const {
  size_t end = request_.prompt.size();
  for (const size_t border : request_.borders)
    if (border > rows_read) end = std::min(end, border);
  return std::span(request_.prompt).subspan(rows_read, end - rows_read);
}

void Job::report_layer(size_t rows_in_pass, size_t layers_done, size_t layer_count) {
  listener_->on_prefill({.rows_done = rows_read_ - cached_,
                         .rows_in_pass = rows_in_pass,
                         .rows_total = request_.prompt.size() - cached_,
                         .layers_done = layers_done,
                         .layer_count = layer_count});
}

void Job::score(std::span<const float> logits) {
  CHECK(rows_scored_ >= rows_read_);
  listener_->on_prompt_logits(rows_scored_++, logits);
}

void Job::rows_were_read(size_t row_count, std::span<const float> logits) {
  rows_read_ += row_count;
  CHECK(prompt_->position_count() == rows_read_);
  logits_.assign(logits.begin(), logits.end());
}

bool Job::is_at_border() const {
  return prompt_is_read() ||
         std::ranges::find(request_.borders, rows_read_) != request_.borders.end();
}

Lasting Job::lasting() const {
  const bool is_inside = prompt_is_read() && answer_count() > 0;
  return is_inside ? Lasting::InMemory : Lasting::OnDisk;
}

Continuation Job::after_prompt() const { return {.waiting = {}, .logits = logits_}; }

// -------------------------------------------------------------------------------- the answers ---

bool Job::has_unstarted_answers() const {
  return prompt_is_read() && answers_started_ < answer_count();
}

Answer& Job::start_answer(const numerics::Kernels& kernels) {
  CHECK(has_unstarted_answers());
  SamplingParameters sampling = request_.sampling;
  sampling.choice = answers_started_++;
  const bool is_last = answers_started_ == answer_count();
  answers_.push_back({.number = sampling.choice,
                      .sequence = is_last ? std::move(*prompt_) : prompt_->fork(),
                      .sampler = Sampler(kernels, sampling)});
  if (is_last) prompt_.reset();
  accept(answers_.back(), logits_);
  return answers_.back();
}

void Job::accept(Answer& answer, std::span<const float> logits) {
  const Sequence& sequence = answer.sequence;
  const TokenId token = answer.sampler.choose(logits, sequence.position_count(), sequence.tokens());
  const bool goes_on = listener_->on_token(answer.number, token, logits);
  if (std::ranges::find(request_.stop_tokens, token) != request_.stop_tokens.end()) {
    answer.end_logits.assign(logits.begin(), logits.end());
    return end_answer(answer, StopReason::StopToken);
  }
  answer.next = token;
  ++answer.generated;
  if (!goes_on) return end_answer(answer, StopReason::Stopped);
  if (answer.generated >= request_.max_tokens) return end_answer(answer, StopReason::MaxTokens);
  if (sequence.position_count() >= context_) return end_answer(answer, StopReason::ContextFull);
}

void Job::end_answer(Answer& answer, StopReason reason) {
  answer.has_ended = true;
  listener_->on_answer_end(answer.number, reason);
}

void Job::remove_ended_answers() {
  answers_.remove_if([](const Answer& answer) { return answer.has_ended; });
}

bool Job::is_complete() const {
  return prompt_is_read() && answers_.empty() && answers_started_ == answer_count();
}

// ------------------------------------------------------------------------------------ the end ---

void Job::end(const Status& status) {
  if (status && request_.max_tokens == 0)
    for (uint32_t i = 0; i < request_.answers; ++i)
      listener_->on_answer_end(i, StopReason::MaxTokens);
  listener_->on_end(status);
  listener_.reset();
}

uint64_t Job::sequences_held() const {
  return has_ended() || !prompt_is_read() ? 1 : answers_.size();
}

uint64_t Job::sequences_wanted() const {
  if (has_ended()) return 1;
  if (!prompt_is_read()) return std::max<uint64_t>(1, answer_count());
  return answers_.size() + (answer_count() - answers_started_);
}

}  // namespace deltafin::engine
