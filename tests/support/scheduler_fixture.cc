#include "support/scheduler_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "support/engine_fixture.h"
#include "support/same_bits.h"

namespace deltafin::test {

using engine::StopReason;

size_t Heard::token_count() const {
  size_t count = 0;
  for (const auto& [number, answer] : answers) count += answer.tokens.size();
  return count;
}

void HearingListener::on_start(uint64_t cached_tokens) {
  EXPECT_FALSE(heard.cached);
  heard.cached = cached_tokens;
}

void HearingListener::on_prefill(const engine::PrefillProgress& progress) {
  EXPECT_TRUE(heard.cached && !heard.has_ended());
  heard.fractions.push_back(progress.fraction());
}

void HearingListener::on_prompt_logits(size_t position, std::span<const float> logits) {
  EXPECT_EQ(position * logits.size(), heard.prompt_logits.size());
  heard.prompt_logits.insert(heard.prompt_logits.end(), logits.begin(), logits.end());
}

bool HearingListener::on_token(uint32_t answer, TokenId token, std::span<const float> logits) {
  EXPECT_TRUE(heard.cached && !heard.has_ended());
  Heard::Answer& into = heard.answers[answer];
  EXPECT_FALSE(into.reason);
  into.tokens.push_back(token);
  into.logits.insert(into.logits.end(), logits.begin(), logits.end());
  return !goes_on || goes_on(answer, token);
}

void HearingListener::on_answer_end(uint32_t answer, StopReason reason) {
  EXPECT_FALSE(heard.answers[answer].reason || heard.has_ended());
  heard.answers[answer].reason = reason;
}

void HearingListener::on_end(const Status& status) {
  EXPECT_FALSE(heard.has_ended());
  heard.status = status;
}

namespace {

class Collector final : public engine::GenerationListener {
 public:
  explicit Collector(Heard::Answer& into) : into_(into) {}
  void on_token(TokenId token, std::span<const float> logits) override {
    into_.tokens.push_back(token);
    into_.logits.insert(into_.logits.end(), logits.begin(), logits.end());
  }

 private:
  Heard::Answer& into_;
};

}  // namespace

Heard alone(engine::Engine& engine, const engine::ScheduledRequest& request, uint64_t context) {
  Heard heard;
  if (request.prompt_logits) {
    engine::Sequence sequence = engine.new_sequence();
    heard.prompt_logits = all_logits(engine, sequence, request.prompt, request.prompt.size());
  }
  for (uint32_t i = 0; i < request.answers; ++i) {
    engine::Sequence sequence = engine.new_sequence();
    engine::GenerateRequest generate{.prompt = request.prompt,
                                     .logits = {},
                                     .max_tokens = request.max_tokens,
                                     .stop_tokens = request.stop_tokens,
                                     .sampling = request.sampling};
    generate.sampling.choice = i;
    const uint64_t room = context == 0 ? ~uint64_t{0} : context - request.prompt.size() + 1;
    generate.max_tokens = std::min(request.max_tokens, room);
    Collector collector(heard.answers[i]);
    const CancelToken never;
    StopReason reason =
        value_of(engine::generate(engine, sequence, generate, collector, never)).reason;
    if (reason == StopReason::MaxTokens && room < request.max_tokens)
      reason = StopReason::ContextFull;
    heard.answers[i].reason = reason;
  }
  heard.status = Status();
  return heard;
}

void expect_same(const Heard& found, const Heard& expected, const std::string& what) {
  ASSERT_TRUE(found.status) << what << ": has not ended";
  ASSERT_TRUE(*found.status) << what << ": " << found.status->error().what;
  expect_same_bits(found.prompt_logits, expected.prompt_logits, what + ", prompt");
  ASSERT_EQ(found.answers.size(), expected.answers.size()) << what;
  for (const auto& [number, answer] : expected.answers) {
    const std::string place = what + ", answer " + std::to_string(number);
    ASSERT_TRUE(found.answers.contains(number)) << place;
    const Heard::Answer& other = found.answers.at(number);
    EXPECT_EQ(other.tokens, answer.tokens) << place;
    ASSERT_TRUE(other.reason) << place;
    EXPECT_EQ(engine::name_of(*other.reason), std::string(engine::name_of(*answer.reason)))
        << place;
    expect_same_bits(other.logits, answer.logits, place);
  }
}

void expect_beginning_of(const Heard& found, const Heard& expected, const std::string& what) {
  Heard shorter = expected;
  ASSERT_LE(found.prompt_logits.size(), expected.prompt_logits.size()) << what;
  shorter.prompt_logits.resize(found.prompt_logits.size());
  expect_same_bits(found.prompt_logits, shorter.prompt_logits, what);
  for (const auto& [number, answer] : found.answers) {
    ASSERT_TRUE(shorter.answers.contains(number)) << what;
    Heard::Answer& whole = shorter.answers[number];
    ASSERT_LE(answer.tokens.size(), whole.tokens.size()) << what;
    whole.tokens.resize(answer.tokens.size());
    whole.logits.resize(answer.logits.size());
    EXPECT_EQ(answer.tokens, whole.tokens) << what;
    expect_same_bits(answer.logits, whole.logits, what);
  }
}

}  // namespace deltafin::test
