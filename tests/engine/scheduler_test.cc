// Many requests through one engine: what each gets is what it gets alone, whatever else runs.
#include "engine/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "base/limits.h"
#include "base/philox.h"
#include "engine/state_directory.h"
#include "support/engine_fixture.h"
#include "support/golden.h"
#include "support/scheduler_fixture.h"
#include "support/test_seed.h"

namespace deltafin::engine {
namespace {

using test::alone;
using test::EngineFixture;
using test::expect_same;
using test::Heard;
using test::HearingListener;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<TokenId> random_tokens(Random& random, size_t count) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = TokenId(random.below(380));  // both vocabularies are larger
  return tokens;
}

std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Options of an engine whose prefill passes have so many rows.
EngineOptions with_rows(const std::string& checkpoint, size_t rows, EngineOptions options = {}) {
  EngineFixture fixture(checkpoint, options);
  const uint64_t row_bytes = options.activation_bytes / fixture.engine().prefill_rows();
  options.activation_bytes = rows * row_bytes;
  return options;
}

// A scheduler, and what its requests hear.
class Bench {
 public:
  struct Request {
    ScheduledRequest asked;
    std::shared_ptr<HearingListener> listener = std::make_shared<HearingListener>();
    RequestId id = 0;
    bool cancelled = false;
    const Heard& heard() const { return listener->heard; }
  };

  Bench(Engine& engine, SchedulerOptions options) : engine_(engine), scheduler_(engine, options) {}

  Scheduler& scheduler() { return scheduler_; }
  // Valid until the bench is gone.
  Request& submit(ScheduledRequest asked) {
    requests_.push_back(std::make_unique<Request>());
    Request& request = *requests_.back();
    request.asked = asked;
    request.id = test::value_of(scheduler_.submit(std::move(asked), request.listener));
    return request;
  }
  void cancel(Request& request) {
    request.cancelled = true;
    scheduler_.cancel(request.id);
  }
  void drain() {
    while (scheduler_.step()) continue;
  }
  Request& run(ScheduledRequest asked) {
    Request& request = submit(std::move(asked));
    drain();
    return request;
  }
  const std::vector<std::unique_ptr<Request>>& requests() const { return requests_; }

  // Rows that passes had since the last call.
  uint64_t new_rows() {
    const uint64_t before = rows_;
    rows_ = engine_.snapshot().rows;
    return rows_ - before;
  }

 private:
  Engine& engine_;
  Scheduler scheduler_;
  std::vector<std::unique_ptr<Request>> requests_;
  uint64_t rows_ = engine_.snapshot().rows;
};

class SchedulerTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr uint64_t kPlenty = uint64_t{1} << 30;

  const std::string checkpoint_ = test::golden_path(GetParam());
  EngineFixture fixture_{checkpoint_};
  Engine& engine_ = fixture_.engine();
  Random random_{test::test_seed()};
};

INSTANTIATE_TEST_SUITE_P(Checkpoints, SchedulerTest, testing::Values("tiny-k3", "tiny-qwen3.5-moe"),
                         [](const testing::TestParamInfo<const char*>& checkpoint) {
                           std::string name = checkpoint.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

// --- random mixes ---

// Draws requests that have beginnings in common with each other and with finished ones.
class Mixer {
 public:
  explicit Mixer(Random& random) : random_(random) {
    for (std::vector<TokenId>& stem : stems_) stem = random_tokens(random, 40);
  }

  ScheduledRequest next(const Bench& bench) {
    ScheduledRequest request{.prompt = prompt(bench)};
    if (random_.below(5) > 0) request.max_tokens = 1 + random_.below(9);
    for (uint64_t i = random_.below(3); i > 0; --i)
      for (const TokenId token : random_tokens(random_, 40)) request.stop_tokens.push_back(token);
    request.answers = random_.below(3) > 0 ? 1 : 1 + uint32_t(random_.below(4));
    request.prompt_logits = random_.below(5) == 0;
    if (random_.below(2) == 0) sample(request.sampling);
    for (uint64_t i = random_.below(3); i > 0; --i)
      request.borders.push_back(1 + random_.below(request.prompt.size()));
    std::ranges::sort(request.borders);
    return request;
  }

 private:
  std::vector<TokenId> prompt(const Bench& bench) {
    if (!bench.requests().empty() && random_.below(3) == 0) {
      const Bench::Request& earlier = *bench.requests()[random_.below(bench.requests().size())];
      if (random_.below(3) == 0 || earlier.heard().answers.empty()) return earlier.asked.prompt;
      return joined(joined(earlier.asked.prompt, earlier.heard().answers.begin()->second.tokens),
                    random_tokens(random_, 1 + random_.below(5)));
    }
    std::vector<TokenId> tokens = stems_[random_.below(2)];
    tokens.resize(1 + random_.below(tokens.size()));
    return joined(tokens, random_tokens(random_, random_.below(20)));
  }

  void sample(SamplingParameters& sampling) {
    sampling.temperature = 0.5f + 2 * random_.uniform();
    sampling.top_p = random_.below(2) == 0 ? 1 : 0.5f + 0.5f * random_.uniform();
    sampling.top_k = uint32_t(random_.below(2) * 50);
    sampling.repetition_penalty = random_.below(2) == 0 ? 1 : 1.2f;
    sampling.seed = random_.next_u64();
  }

  Random& random_;
  std::vector<TokenId> stems_[2];
};

// `count` requests come at random steps, and some are cancelled at random steps.
void run_mix(Engine& engine, Random& random, size_t count, const std::string& what) {
  const uint64_t kept_bytes[] = {0, 3 * (engine.state_layout().fixed_bytes() + (1 << 20)),
                                 uint64_t{1} << 30};
  const uint64_t context = random.below(3) == 0 ? 100 : 0;
  Bench bench(engine, {.sequences = uint32_t(1 + random.below(8)),
                       .context = context,
                       .kept_state_bytes = kept_bytes[random.below(3)]});
  Mixer mixer(random);
  while (true) {
    while (bench.requests().size() < count && random.below(12) == 0) {
      ScheduledRequest request = mixer.next(bench);
      if (context != 0 && request.prompt.size() > context) request.prompt.resize(context);
      bench.submit(std::move(request));
    }
    if (!bench.requests().empty() && random.below(40) == 0)
      bench.cancel(*bench.requests()[random.below(bench.requests().size())]);
    if (!bench.scheduler().step() && bench.requests().size() == count) break;
  }
  for (size_t i = 0; i < count; ++i) {
    const Bench::Request& request = *bench.requests()[i];
    const std::string place = what + ", request " + std::to_string(i);
    const Heard expected = alone(engine, request.asked, context);
    ASSERT_TRUE(request.heard().has_ended()) << place;
    if (*request.heard().status) {
      expect_same(request.heard(), expected, place);
      continue;
    }
    EXPECT_TRUE(request.cancelled) << place << ": " << request.heard().status->error().what;
    EXPECT_EQ(request.heard().status->error().code, ErrorCode::Cancelled) << place;
    test::expect_beginning_of(request.heard(), expected, place);
  }
}

void run_mixes(const std::string& checkpoint, size_t rounds) {
  const uint64_t seed = test::test_seed();
  for (size_t round = 0; round < rounds; ++round) {
    Random random(seed * 1'000 + round);
    const size_t rows[] = {1, 3, 17, 400};
    EngineOptions options{.thread_count = 1 + random.below(2),
                          .expert_cache_bytes = uint64_t{random.below(2) == 0 ? 1u : 1u << 20}};
    EngineFixture fixture(checkpoint, with_rows(checkpoint, rows[random.below(4)], options));
    run_mix(fixture.engine(), random, 2 + random.below(7),
            "seed " + std::to_string(seed) + ", round " + std::to_string(round));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(SchedulerTest, EveryRequestOfAMixGetsWhatItGetsAlone) { run_mixes(checkpoint_, 3); }

using SchedulerFull = SchedulerTest;
INSTANTIATE_TEST_SUITE_P(Checkpoints, SchedulerFull, testing::Values("tiny-k3", "tiny-qwen3.5-moe"),
                         [](const testing::TestParamInfo<const char*>& checkpoint) {
                           return std::to_string(checkpoint.index);
                         });
TEST_P(SchedulerFull, EveryRequestOfManyMixesGetsWhatItGetsAlone) { run_mixes(checkpoint_, 120); }

// --- passes ---

TEST_P(SchedulerTest, PromptsThatArriveTogetherReadEachExpertOnce) {
  const EngineOptions options{
      .thread_count = 2, .expert_cache_bytes = 1, .hints = memory::Hints::None};
  const auto bytes_of = [&](size_t requests) {
    EngineFixture fixture(checkpoint_, options);
    Bench bench(fixture.engine(), {.sequences = 4});
    Random random(3);
    for (size_t i = 0; i < requests; ++i) bench.submit({.prompt = random_tokens(random, 512)});
    bench.drain();
    EXPECT_EQ(bench.scheduler().snapshot().prefill_passes, 1u);
    return fixture.engine().snapshot().experts;
  };
  const memory::ExpertCounters one = bytes_of(1), four = bytes_of(4);
  uint64_t experts = 0;
  for (const checkpoint::LayerContract& layer : engine_.contract().layers)
    if (layer.experts) experts += layer.experts->expert_count;
  EXPECT_GE(double(one.experts_used), 0.95 * double(experts));
  EXPECT_LE(double(four.bytes_read), 1.1 * double(one.bytes_read));
}

TEST_P(SchedulerTest, ARowOfEveryAnswerGoesIntoOnePass) {
  Bench bench(engine_, {.sequences = 8});
  for (size_t i = 0; i < 4; ++i)
    bench.submit({.prompt = random_tokens(random_, 5 + i), .max_tokens = 6, .answers = 2});
  bench.drain();
  const SchedulerCounters counters = bench.scheduler().snapshot();
  EXPECT_EQ(counters.prefill_passes, 1u);
  EXPECT_EQ(counters.decode_passes, 5u);
  EXPECT_EQ(bench.new_rows(), 5 + 6 + 7 + 8 + 8 * 5u);
  EXPECT_EQ(counters.generated_tokens, 8 * 6u);
}

TEST_P(SchedulerTest, ALongPromptTakesSeveralPassesAndLetsAShortOneIn) {
  EngineFixture fixture(checkpoint_, with_rows(checkpoint_, 16));
  ASSERT_EQ(fixture.engine().prefill_rows(), 16u);
  Bench bench(fixture.engine(), {.sequences = 2});
  const Bench::Request& long_one = bench.submit({.prompt = random_tokens(random_, 100)});
  const Bench::Request& short_one =
      bench.submit({.prompt = random_tokens(random_, 5), .max_tokens = 1});
  while (!short_one.heard().has_ended()) ASSERT_TRUE(bench.scheduler().step());
  // Read in the first; chosen from in the step that begins the second.
  EXPECT_EQ(bench.scheduler().snapshot().prefill_passes, 2u);
  EXPECT_FALSE(long_one.heard().has_ended());
  bench.drain();
  EXPECT_EQ(bench.scheduler().snapshot().prefill_passes, 7u);  // of 11 rows, then 5 of 16, then 9
  const std::vector<double>& fractions = long_one.heard().fractions;
  EXPECT_EQ(fractions.size(), 7 * fixture.engine().layer_count());
  EXPECT_TRUE(std::ranges::is_sorted(fractions));
  EXPECT_DOUBLE_EQ(fractions.back(), 1);
}

// A decode pass has no more rows than memory allows; everybody gets his turn.
TEST_P(SchedulerTest, MoreAnswersThanRowsTakeTurns) {
  EngineFixture fixture(checkpoint_, with_rows(checkpoint_, 2));
  Bench bench(fixture.engine(), {.sequences = 5});
  const Bench::Request& request = bench.submit({.prompt = {7, 8}, .max_tokens = 9, .answers = 5});
  size_t most = 0, least = 0;
  while (bench.scheduler().step()) {
    if (request.heard().has_ended() || request.heard().answers.size() < 5) continue;
    most = 0, least = 100;
    for (const auto& [number, answer] : request.heard().answers) {
      most = std::max(most, answer.tokens.size());
      least = std::min(least, answer.tokens.size());
    }
    EXPECT_LE(most, least + 1);
  }
  expect_same(request.heard(), alone(engine_, request.asked), "five answers, two rows");
}

// --- limits and ends ---

TEST_P(SchedulerTest, RefusesWhatCanNeverRun) {
  Scheduler scheduler(engine_, {.context = 10});
  const std::shared_ptr<HearingListener> listener = std::make_shared<HearingListener>();
  const auto refusal = [&](ScheduledRequest request) {
    const Result<RequestId> id = scheduler.submit(std::move(request), listener);
    if (id) return std::string("accepted");
    EXPECT_EQ(id.error().code, ErrorCode::Usage);
    return id.error().what;
  };
  EXPECT_THAT(refusal({.prompt = {}}), HasSubstr("at least one"));
  EXPECT_THAT(refusal({.prompt = {1, 512}}), HasSubstr("token id 512 at index 1"));
  EXPECT_THAT(refusal({.prompt = {-1}}), HasSubstr("token id -1 at index 0"));
  EXPECT_THAT(refusal({.prompt = std::vector<TokenId>(11, 1)}),
              HasSubstr("the prompt has 11 tokens, and the context 10"));
  EXPECT_THAT(refusal({.prompt = {1}, .sampling = {.top_p = 2}}), HasSubstr("top_p"));
  EXPECT_THAT(refusal({.prompt = {1}, .answers = 0}), HasSubstr("0 answers"));
  EXPECT_FALSE(scheduler.step());
  EXPECT_FALSE(listener->heard.has_ended());
}

TEST_P(SchedulerTest, AnAnswerEndsWhereTheContextIsFull) {
  Bench bench(engine_, {.context = 10});
  const ScheduledRequest asked{.prompt = {1, 2, 3, 4, 5, 6, 7}, .max_tokens = 100};
  const Bench::Request& request = bench.run(asked);
  expect_same(request.heard(), alone(engine_, asked, 10), "context of 10");
  EXPECT_EQ(request.heard().answers.at(0).reason, StopReason::ContextFull);
  EXPECT_EQ(request.heard().answers.at(0).tokens.size(), 4u);
}

TEST_P(SchedulerTest, AListenerEndsItsAnswerAndNoOther) {
  Bench bench(engine_, {.sequences = 2});
  const ScheduledRequest asked{
      .prompt = {1, 2, 3}, .max_tokens = 7, .sampling = {.temperature = 3}, .answers = 2};
  Bench::Request& request = bench.submit(asked);
  request.listener->goes_on = [&](uint32_t answer, TokenId) {
    return answer == 1 || request.heard().answers.at(0).tokens.size() < 3;
  };
  bench.drain();
  Heard expected = alone(engine_, asked);
  EXPECT_NE(expected.answers.at(0).tokens, expected.answers.at(1).tokens);
  expected.answers.at(0).tokens.resize(3);
  expected.answers.at(0).logits.resize(3 * engine_.vocab_size());
  expected.answers.at(0).reason = StopReason::Stopped;
  expect_same(request.heard(), expected, "stopped after three");
}

TEST_P(SchedulerTest, WithoutTokensToWriteAPromptIsScored) {
  Bench bench(engine_, {.kept_state_bytes = kPlenty});
  // Twice: nothing is reused, for every row is wanted.
  for (int i = 0; i < 2; ++i) {
    ScheduledRequest asked{.prompt = random_tokens(random_, limits::kScoredRows + 9),
                           .prompt_logits = true,
                           .borders = {5}};
    if (i == 1) asked.prompt = bench.requests()[0]->asked.prompt;
    const Bench::Request& request = bench.run(asked);
    expect_same(request.heard(), alone(engine_, asked), "scored");
    EXPECT_EQ(request.heard().cached, 0u);
    EXPECT_EQ(request.heard().answers.at(0).reason, StopReason::MaxTokens);
  }
}

TEST_P(SchedulerTest, RequestsAreServedInOrderOfArrival) {
  for (const uint32_t sequences : {1u, 3u}) {
    Bench bench(engine_, {.sequences = sequences});
    std::vector<size_t> ended;
    for (const uint32_t answers : {1u, 8u, 1u, 3u, 1u})
      bench.submit({.prompt = random_tokens(random_, 4), .max_tokens = 4, .answers = answers});
    while (bench.scheduler().step())
      for (size_t i = 0; i < bench.requests().size(); ++i)
        if (bench.requests()[i]->heard().has_ended() && std::ranges::find(ended, i) == ended.end())
          ended.push_back(i);
    EXPECT_THAT(ended, ElementsAre(0, 1, 2, 3, 4)) << sequences;
    for (const std::unique_ptr<Bench::Request>& request : bench.requests())
      expect_same(request->heard(), alone(engine_, request->asked), "one after the other");
  }
}

TEST_P(SchedulerTest, CountsWaitingAndRunningRequests) {
  Bench bench(engine_, {.sequences = 2});
  for (int i = 0; i < 5; ++i) bench.submit({.prompt = {1, 2}, .max_tokens = 5});
  EXPECT_EQ(bench.scheduler().snapshot().waiting, 5u);
  bench.scheduler().step();
  EXPECT_EQ(bench.scheduler().snapshot().waiting, 3u);
  EXPECT_EQ(bench.scheduler().snapshot().running, 2u);
  bench.drain();
  EXPECT_EQ(bench.scheduler().snapshot().waiting, 0u);
  EXPECT_EQ(bench.scheduler().snapshot().running, 0u);
}

// --- kept states ---

TEST_P(SchedulerTest, APromptGoesOnFromTheLongestKeptState) {
  Bench bench(engine_, {.sequences = 4, .kept_state_bytes = kPlenty});
  const std::vector<TokenId> first = random_tokens(random_, 30);
  const Bench::Request& one = bench.run({.prompt = first, .max_tokens = 6, .borders = {10, 20}});
  EXPECT_EQ(one.heard().cached, 0u);
  const std::vector<TokenId> answer = one.heard().answers.at(0).tokens;
  const std::vector<TokenId> more = {3, 1, 4};
  bench.new_rows();

  struct Case {
    const char* what;
    std::vector<TokenId> prompt;
    uint64_t cached;
  };
  std::vector<TokenId> half = first, other = first;
  half.resize(15);
  other[20] = (other[20] + 1) % 380;
  std::vector<TokenId> foreign = first;
  foreign[0] = (foreign[0] + 1) % 380;
  // The last token of the answer was never computed.
  for (const Case& next :
       {Case{"with the answer", joined(joined(first, answer), more), first.size() + 5},
        Case{"without the answer", joined(first, more), first.size()},
        Case{"another end", other, 20}, Case{"a part", half, 10}, Case{"foreign", foreign, 0}}) {
    const ScheduledRequest asked{.prompt = next.prompt, .max_tokens = 3};
    const Bench::Request& request = bench.run(asked);
    EXPECT_EQ(request.heard().cached, next.cached) << next.what;
    EXPECT_EQ(bench.new_rows(), next.prompt.size() - next.cached + 2) << next.what;
    expect_same(request.heard(), alone(engine_, asked), next.what);
    bench.new_rows();
  }
  const SchedulerCounters counters = bench.scheduler().snapshot();
  EXPECT_EQ(counters.cached_tokens, 35 + 30 + 20 + 10u);
  EXPECT_GT(counters.kept_states, 8u);
}

// Its turn to be read comes when what it begins with has been.
TEST_P(SchedulerTest, APromptThatWaitsForRowsGoesOnFromWhatWasReadMeanwhile) {
  EngineFixture fixture(checkpoint_, with_rows(checkpoint_, 16));
  Bench bench(fixture.engine(), {.sequences = 2, .kept_state_bytes = kPlenty});
  const std::vector<TokenId> prompt = random_tokens(random_, 32);
  bench.submit({.prompt = prompt});
  const Bench::Request& second = bench.submit({.prompt = joined(prompt, {4, 5}), .max_tokens = 3});
  bench.drain();
  EXPECT_EQ(second.heard().cached, 32u);
  expect_same(second.heard(), alone(engine_, second.asked), "the one that waited");
}

TEST_P(SchedulerTest, ARepeatedPromptNeedsNoPass) {
  Bench bench(engine_, {.kept_state_bytes = kPlenty});
  const std::vector<TokenId> prompt = random_tokens(random_, 30);
  bench.run({.prompt = prompt, .max_tokens = 2});
  bench.new_rows();
  const ScheduledRequest asked{
      .prompt = prompt, .max_tokens = 5, .sampling = {.temperature = 2, .seed = 9}};
  const Bench::Request& request = bench.run(asked);
  EXPECT_EQ(request.heard().cached, 30u);
  EXPECT_TRUE(request.heard().fractions.empty());
  EXPECT_EQ(bench.new_rows(), 4u);
  expect_same(request.heard(), alone(engine_, asked), "repeated");
}

TEST_P(SchedulerTest, WithoutMemoryForKeptStatesNothingIsReused) {
  Bench bench(engine_, {});
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(bench.run({.prompt = {1, 2, 3}, .max_tokens = 2}).heard().cached, 0u);
  EXPECT_EQ(bench.scheduler().snapshot().kept_state_bytes, 0u);
}

TEST_P(SchedulerTest, WhatACancelledRequestComputedIsKept) {
  EngineFixture fixture(checkpoint_, with_rows(checkpoint_, 8));
  Bench bench(fixture.engine(), {.kept_state_bytes = kPlenty});
  Bench::Request& request = bench.submit({.prompt = random_tokens(random_, 40)});
  while (bench.scheduler().snapshot().prefill_passes < 3) ASSERT_TRUE(bench.scheduler().step());
  bench.cancel(request);
  bench.drain();
  EXPECT_EQ(request.heard().status->error().code, ErrorCode::Cancelled);
  const ScheduledRequest again{.prompt = request.asked.prompt, .max_tokens = 4};
  const Bench::Request& second = bench.run(again);
  EXPECT_EQ(second.heard().cached, 16u);
  expect_same(second.heard(), alone(engine_, again), "again");
}

// --- states on disk ---

TEST_P(SchedulerTest, StatesOnDiskSurviveARestart) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("deltafin_scheduler_" + std::to_string(::getpid()) + "_" + GetParam());
  std::filesystem::remove_all(folder);
  const state::SnapshotOwner owner{.arithmetic = "canon-1",
                                   .identity = {},
                                   .vocab_size = engine_.vocab_size(),
                                   .max_positions = engine_.contract().max_positions};
  const io::PosixStorage storage;
  const auto open = [&] {
    return test::value_of(StateDirectory::open(storage, folder, owner, engine_.state_layout(),
                                               {.budget_bytes = kPlenty}));
  };
  const std::vector<TokenId> first = random_tokens(random_, 30);
  std::vector<TokenId> answer;
  {
    StateDirectory directory = open();
    Bench bench(engine_,
                {.sequences = 2, .kept_state_bytes = kPlenty, .state_directory = &directory});
    answer =
        bench.run({.prompt = first, .max_tokens = 5, .borders = {20}}).heard().answers.at(0).tokens;
    EXPECT_EQ(directory.count(), 2u);  // the border and the end
    EXPECT_FALSE(bench.scheduler().step());
  }
  StateDirectory directory = open();
  Bench bench(engine_, {.kept_state_bytes = kPlenty, .state_directory = &directory});
  const ScheduledRequest next{.prompt = joined(joined(first, answer), {8, 9}), .max_tokens = 4};
  const ScheduledRequest other{.prompt = joined({first.begin(), first.begin() + 22}, {1, 2}),
                               .max_tokens = 4};
  for (const auto& [asked, cached] : {std::pair(next, 34u), std::pair(other, 20u)}) {
    const Bench::Request& request = bench.run(asked);
    EXPECT_EQ(request.heard().cached, cached);
    expect_same(request.heard(), alone(engine_, asked), "after a restart");
  }
  std::filesystem::remove_all(folder);
}

// --- cancelling ---

// Calls something when a chosen layer has been routed, in the middle of a pass.
class AtLayer final : public model::Observer {
 public:
  AtLayer(Engine& engine, size_t layer, std::function<void()> action)
      : engine_(engine), layer_(layer), action_(std::move(action)) {
    engine_.set_observer(this);
  }
  ~AtLayer() override { engine_.set_observer(nullptr); }
  void on_routes(size_t layer, std::span<const numerics::Route>) override {
    if (layer == layer_ && action_) std::exchange(action_, nullptr)();
  }

 private:
  Engine& engine_;
  size_t layer_;
  std::function<void()> action_;
};

TEST_P(SchedulerTest, ACancelOfAllStopsThePassInTheMiddle) {
  Bench bench(engine_, {.sequences = 2});
  Bench::Request& a = bench.submit({.prompt = random_tokens(random_, 20), .max_tokens = 3});
  Bench::Request& b = bench.submit({.prompt = random_tokens(random_, 20), .max_tokens = 3});
  {
    const AtLayer hook(engine_, 3, [&] {
      bench.cancel(a);
      bench.cancel(b);
    });
    bench.drain();
  }
  EXPECT_EQ(a.heard().status->error().code, ErrorCode::Cancelled);
  EXPECT_EQ(b.heard().status->error().code, ErrorCode::Cancelled);
  EXPECT_EQ(a.heard().fractions.size(), 3u);  // layer 3 was not finished
  EXPECT_EQ(engine_.snapshot().passes, 0u);
  EXPECT_EQ(bench.scheduler().snapshot().running, 0u);
}

TEST_P(SchedulerTest, ACancelOfOneLeavesItsPassToTheOthers) {
  Bench bench(engine_, {.sequences = 2, .kept_state_bytes = kPlenty});
  Bench::Request& a = bench.submit({.prompt = random_tokens(random_, 20), .max_tokens = 3});
  Bench::Request& b = bench.submit({.prompt = random_tokens(random_, 20), .max_tokens = 3});
  {
    const AtLayer hook(engine_, 3, [&] { bench.cancel(a); });
    while (!a.heard().has_ended()) ASSERT_TRUE(bench.scheduler().step());
  }
  EXPECT_EQ(a.heard().fractions.size(), 4u);  // the next step ended it
  EXPECT_FALSE(b.heard().has_ended());
  bench.drain();
  expect_same(b.heard(), alone(engine_, b.asked), "the other one");
  EXPECT_EQ(bench.scheduler().snapshot().prefill_passes, 1u);
  EXPECT_EQ(bench.scheduler().snapshot().kept_states, 2u);  // nothing of the one
}

TEST_P(SchedulerTest, ADecodePassStopsWhenAllItsAnswersAreCancelled) {
  Bench bench(engine_, {.sequences = 4, .kept_state_bytes = kPlenty});
  Bench::Request& request =
      bench.submit({.prompt = random_tokens(random_, 10), .max_tokens = 50, .answers = 2});
  while (request.heard().token_count() < 8) ASSERT_TRUE(bench.scheduler().step());
  {
    const AtLayer hook(engine_, 3, [&] { bench.cancel(request); });
    bench.drain();
  }
  EXPECT_EQ(request.heard().token_count(), 8u);
  // What was written is kept: a chat goes on after its user pressed stop.
  const ScheduledRequest next{
      .prompt = joined(joined(request.asked.prompt, request.heard().answers.at(1).tokens), {5}),
      .max_tokens = 2};
  const Bench::Request& second = bench.run(next);
  EXPECT_EQ(second.heard().cached, 13u);
  expect_same(second.heard(), alone(engine_, next), "after a stop");
}

TEST_P(SchedulerTest, WaitingRequestsAreCancelledWithoutBeingBegun) {
  Bench bench(engine_, {});
  bench.submit({.prompt = {1, 2, 3}, .max_tokens = 5});
  Bench::Request& waiting = bench.submit({.prompt = {1, 2, 3}, .max_tokens = 5});
  bench.scheduler().step();
  bench.cancel(waiting);
  bench.scheduler().step();
  EXPECT_EQ(waiting.heard().status->error().code, ErrorCode::Cancelled);
  EXPECT_FALSE(waiting.heard().cached);
  bench.drain();
  bench.cancel(waiting);  // has ended: nothing happens
  bench.cancel(*bench.requests()[0]);
  EXPECT_FALSE(bench.scheduler().step());
  EXPECT_TRUE(*bench.requests()[0]->heard().status);
}

TEST_P(SchedulerTest, OtherThreadsSubmitAndCancel) {
  Scheduler scheduler(engine_, {.sequences = 3});
  std::vector<std::shared_ptr<HearingListener>> listeners(24);
  for (std::shared_ptr<HearingListener>& listener : listeners)
    listener = std::make_shared<HearingListener>();
  std::atomic<bool> is_done = false;
  std::thread other([&] {
    for (const std::shared_ptr<HearingListener>& listener : listeners) {
      const RequestId id =
          test::value_of(scheduler.submit({.prompt = {1, 2, 3}, .max_tokens = 1'000}, listener));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      scheduler.cancel(id);
    }
    is_done = true;
  });
  while (!is_done || scheduler.step()) continue;
  other.join();
  for (const std::shared_ptr<HearingListener>& listener : listeners) {
    ASSERT_TRUE(listener->heard.has_ended());
    EXPECT_EQ(listener->heard.status->error().code, ErrorCode::Cancelled);
  }
}

}  // namespace
}  // namespace deltafin::engine
