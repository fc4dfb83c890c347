#include "serve/generation.h"

#include <fmt/format.h>

#include <algorithm>

#include "serve/tool_call_output.h"
#include "text/utf8.h"

namespace deltafin::serve {

namespace {

using engine::StopReason;

// Proxies and clients give up on a stream that says nothing for long.
constexpr std::chrono::seconds kSignInterval{2};

size_t character_count(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

}  // namespace

// What the scheduler says of one prompt, one call at a time.
class Generation::Listener final : public engine::RequestListener {
 public:
  Listener(std::shared_ptr<Generation> generation, size_t prompt)
      : generation_(std::move(generation)), prompt_(prompt) {}

  void on_start(uint64_t cached) override {
    const std::scoped_lock lock(generation_->mutex_);
    generation_->on_start(prompt_, cached);
  }
  void on_prefill(const engine::PrefillProgress& progress) override {
    const std::scoped_lock lock(generation_->mutex_);
    generation_->prefill_ = progress;
  }
  void on_prompt_logits(size_t position, std::span<const float> logits) override {
    const std::scoped_lock lock(generation_->mutex_);
    generation_->on_prompt_logits(prompt_, position, logits);
  }
  bool on_token(uint32_t answer, TokenId token, std::span<const float> logits) override {
    const std::scoped_lock lock(generation_->mutex_);
    return generation_->on_token(choice(answer), token, logits);
  }
  void on_answer_end(uint32_t answer, StopReason reason) override {
    const std::scoped_lock lock(generation_->mutex_);
    generation_->on_answer_end(choice(answer), reason);
  }
  void on_end(const Status& status) override { generation_->on_prompt_end(prompt_, status); }

 private:
  size_t choice(uint32_t answer) const { return prompt_ * generation_->setup_.answers + answer; }

  std::shared_ptr<Generation> generation_;
  size_t prompt_;
};

Result<std::shared_ptr<Generation>> Generation::create(GenerationSetup setup,
                                                       std::shared_ptr<Job> job,
                                                       const text::Tokenizer& tokenizer,
                                                       const numerics::Kernels& kernels,
                                                       const Clock& clock) {
  std::shared_ptr<Generation> made(
      new Generation(std::move(setup), std::move(job), tokenizer, kernels, clock));
  for (Choice& choice : made->choices_) {
    if (made->is_chat()) {
      TRY(choice.text, make_chat_text(tokenizer, *made->setup_.channels, made->setup_.stops));
    } else {
      choice.text = make_plain_text(tokenizer, made->setup_.stops);
    }
  }
  return made;
}

Generation::Generation(GenerationSetup setup, std::shared_ptr<Job> job,
                       const text::Tokenizer& tokenizer, const numerics::Kernels& kernels,
                       const Clock& clock)
    : setup_(std::move(setup)),
      job_(std::move(job)),
      tokenizer_(tokenizer),
      kernels_(kernels),
      clock_(clock),
      choices_(setup_.prompts.size() * setup_.answers),
      prompt_logprobs_(setup_.prompts.size()),
      open_prompts_(setup_.prompts.size()),
      arrived_(clock.now()),
      last_sign_(arrived_) {
  for (const std::vector<TokenId>& prompt : setup_.prompts) usage_.prompt_tokens += prompt.size();
}

std::vector<std::shared_ptr<engine::RequestListener>> Generation::create_listeners() {
  std::vector<std::shared_ptr<engine::RequestListener>> listeners;
  for (size_t prompt = 0; prompt < setup_.prompts.size(); ++prompt)
    listeners.push_back(std::make_shared<Listener>(shared_from_this(), prompt));
  return listeners;
}

void Generation::on_start(size_t prompt, uint64_t cached) {
  usage_.cached_tokens += cached;
  if (!prefill_began_) prefill_began_ = clock_.now();
  prefill_ = {.rows_total = setup_.prompts[prompt].size() - cached, .layer_count = 1};
  if (over_) return;
  if (!wants_prompt_logits()) begin(prompt);
}

// With an echo the prompt is the beginning of each answer.
void Generation::begin(size_t prompt) {
  if (!setup_.echo) return;
  const std::vector<TokenId>& ids = setup_.prompts[prompt];
  Result<std::string> bytes = tokenizer_.decode(ids);
  text::StreamDecoder decoder;
  std::string text = bytes ? decoder.push(*bytes) + decoder.finish() : "";
  for (uint32_t answer = 0; answer < setup_.answers; ++answer) {
    const size_t index = prompt * setup_.answers + answer;
    choices_[index].held = prompt_logprobs_[prompt];
    choices_[index].offset = character_count(text);
    emit(index, {.content = text}, std::nullopt);
  }
}

TokenLogprob Generation::logprob_of(TokenId token, std::span<const float> logits) const {
  std::vector<TokenId> ids = engine::most_probable(logits, setup_.logprobs.value_or(0));
  ids.push_back(token);
  const std::vector<float> logprobs = engine::log_probabilities(kernels_, logits, ids);
  const auto bytes = [&](TokenId id) { return std::string(tokenizer_.bytes_of(id).value_or("")); };
  TokenLogprob result{.bytes = bytes(token), .logprob = logprobs.back()};
  for (size_t i = 0; i + 1 < ids.size(); ++i)
    result.top.push_back({.bytes = bytes(ids[i]), .logprob = logprobs[i]});
  return result;
}

void Generation::on_prompt_logits(size_t prompt, size_t position, std::span<const float> logits) {
  if (over_) return;
  const std::vector<TokenId>& ids = setup_.prompts[prompt];
  std::vector<TokenLogprob>& logprobs = prompt_logprobs_[prompt];
  const auto add = [&](TokenLogprob logprob) {
    logprob.text_offset =
        logprobs.empty() ? 0 : logprobs.back().text_offset + character_count(logprobs.back().bytes);
    logprobs.push_back(std::move(logprob));
  };
  if (position == 0) {
    add({.bytes = std::string(tokenizer_.bytes_of(ids[0]).value_or("")), .has_logprob = false});
  }
  if (position + 1 < ids.size()) return add(logprob_of(ids[position + 1], logits));
  begin(prompt);
}

bool Generation::on_token(size_t index, TokenId token, std::span<const float> logits) {
  generating_ = true;
  Choice& choice = choices_[index];
  if (over_ || choice.ended) return false;
  // The token that ends an answer is no part of it, but may say how a turn ended.
  if (std::ranges::find(setup_.stop_tokens, token) != setup_.stop_tokens.end()) return true;
  ++usage_.completion_tokens;
  if (setup_.logprobs) {
    choice.held.push_back(logprob_of(token, logits));
    choice.held.back().text_offset = choice.offset;
  }
  Result<TextPiece> piece = choice.text->push(token);
  if (!piece) {
    // An id of the model's vocabulary that its tokenizer has no bytes for.
    piece = TextPiece{.content = "\xEF\xBF\xBD"};
  }
  if (choice.text->is_reasoning()) ++usage_.reasoning_tokens;
  choice.offset += character_count(tokenizer_.bytes_of(token).value_or(""));
  emit(index, *std::move(piece), std::nullopt);
  return !choice.text->stopped();
}

void Generation::on_answer_end(size_t index, StopReason reason) {
  Choice& choice = choices_[index];
  if (over_ || choice.ended || reason == StopReason::Interrupted) return;
  choice.ended = true;
  const bool by_itself = reason == StopReason::StopToken;
  TextPiece rest;
  if (!choice.text->stopped())
    rest = choice.text->finish(by_itself ? text::OutputEnd::EndOfTurn : text::OutputEnd::CutOff);
  const bool stops = by_itself || reason == StopReason::Stopped;
  const bool calls = !choice.whole.calls.empty() || !rest.calls.empty();
  emit(index, std::move(rest),
       !stops  ? FinishReason::Length
       : calls ? FinishReason::ToolCalls
               : FinishReason::Stop);
}

void Generation::emit(size_t index, TextPiece piece, std::optional<FinishReason> finish) {
  Choice& choice = choices_[index];
  ChatChoice fresh{.content = std::move(piece.content),
                   .reasoning = std::move(piece.reasoning),
                   .finish = finish};
  for (text::ParsedCall& call : piece.calls)
    fresh.calls.push_back(
        to_output(std::move(call), choice.whole.calls.size() + fresh.calls.size()));
  // Tokens of a stop string are no part of the answer, and until it is sure that they are none,
  // nobody hears of them.
  if (choice.text->stopped()) choice.held.clear();
  if (!choice.text->holds_back() || finish) fresh.logprobs = std::exchange(choice.held, {});
  const bool streams = job_->form() == AnswerForm::Stream;
  const bool with_logprobs = setup_.logprobs.has_value();
  const uint32_t number = static_cast<uint32_t>(index);
  if (streams && is_chat()) {
    if (!std::exchange(choice.begun, true))
      job_->add_event(
          chat_event(setup_.head, number, {}, true, 0, with_logprobs, setup_.include_usage));
    if (!fresh.content.empty() || !fresh.reasoning.empty() || !fresh.calls.empty() ||
        !fresh.logprobs.empty() || finish)
      job_->add_event(chat_event(setup_.head, number, fresh, false,
                                 static_cast<uint32_t>(choice.whole.calls.size()), with_logprobs,
                                 setup_.include_usage));
    last_sign_ = clock_.now();
  } else if (streams) {
    if (!fresh.content.empty() || !fresh.logprobs.empty() || finish)
      job_->add_event(
          completion_event(setup_.head, number,
                           {.text = fresh.content, .logprobs = fresh.logprobs, .finish = finish},
                           with_logprobs, setup_.include_usage));
    last_sign_ = clock_.now();
  } else {
    choice.whole.content += fresh.content;
    choice.whole.reasoning += fresh.reasoning;
    std::ranges::move(fresh.logprobs, std::back_inserter(choice.whole.logprobs));
    choice.whole.finish = finish;
  }
  std::ranges::move(fresh.calls, std::back_inserter(choice.whole.calls));
}

void Generation::on_prompt_end(size_t prompt, const Status& status) {
  std::unique_lock lock(mutex_);
  if (over_) return;
  if (!status) return give_up(std::move(lock), to_api_error(status.error()));
  for (uint32_t answer = 0; answer < setup_.answers; ++answer) {
    const size_t index = prompt * setup_.answers + answer;
    if (!choices_[index].ended) on_answer_end(index, StopReason::MaxTokens);
  }
  if (--open_prompts_ == 0) finish();
}

void Generation::finish() {
  over_ = true;
  const bool with_logprobs = setup_.logprobs.has_value();
  if (job_->form() == AnswerForm::Stream) {
    if (setup_.include_usage) job_->add_event(usage_event(setup_.head, is_chat(), usage_));
    job_->add_event(kDoneEvent);
    return job_->end_stream();
  }
  if (is_chat()) {
    std::vector<ChatChoice> choices;
    for (Choice& choice : choices_) choices.push_back(std::move(choice.whole));
    return job_->end_whole(200, chat_json(setup_.head, choices, with_logprobs, usage_));
  }
  std::vector<CompletionChoice> choices;
  for (Choice& choice : choices_)
    choices.push_back({.text = std::move(choice.whole.content),
                       .logprobs = std::move(choice.whole.logprobs),
                       .finish = choice.whole.finish});
  job_->end_whole(200, completion_json(setup_.head, choices, with_logprobs, usage_));
}

void Generation::give_up(std::unique_lock<std::mutex> lock, const ApiError& error) {
  over_ = true;
  job_->fail(error);
  lock.unlock();
  if (give_up_) give_up_();
}

// What a client hears that waits: where its request is.
std::string Generation::sign(std::chrono::nanoseconds now) const {
  if (generating_) return "generating";
  if (!prefill_began_) return "queued";
  if (prefill_.rows_total == 0) return "prefill";
  const double fraction = prefill_.fraction();
  const double spent = seconds(now - *prefill_began_);
  return fmt::format(
      "prefill {}/{}{}", static_cast<uint64_t>(fraction * static_cast<double>(prefill_.rows_total)),
      prefill_.rows_total,
      fraction > 0 ? fmt::format(" eta {:.0f}s", spent / fraction * (1 - fraction)) : "");
}

void Generation::tick() {
  std::unique_lock lock(mutex_);
  if (over_) return;
  const std::chrono::nanoseconds now = clock_.now();
  if (setup_.timeout && now - arrived_ > *setup_.timeout) {
    return give_up(std::move(lock),
                   {.status = 408,
                    .message = fmt::format("the answer was not complete after timeout: {} s\n  "
                                           "give more time, or leave the field out",
                                           seconds(*setup_.timeout)),
                    .type = "timeout",
                    .param = "timeout",
                    .code = "timeout"});
  }
  if (now - last_sign_ < kSignInterval) return;
  last_sign_ = now;
  job_->comment(comment_event(sign(now)));
}

}  // namespace deltafin::serve
