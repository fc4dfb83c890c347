// The scheduler on a simulated disk and clock: what a bad disk does to whom, and what time goes
// where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/philox.h"
#include "engine/scheduler.h"
#include "engine/state_directory.h"
#include "io/simulated.h"
#include "support/engine_fixture.h"
#include "support/golden.h"
#include "support/scheduler_fixture.h"
#include "support/test_seed.h"

namespace deltafin::engine {
namespace {

using test::alone;
using test::expect_same;
using test::HearingListener;
using testing::HasSubstr;

// Which experts passes needed.
class Needed final : public model::Observer {
 public:
  void on_routes(size_t layer, std::span<const numerics::Route> routes) override {
    for (const numerics::Route& route : routes) experts.insert({uint32_t(layer), route.expert});
  }
  std::set<std::pair<uint32_t, uint32_t>> experts;
};

class SchedulerSimulation : public testing::TestWithParam<const char*> {
 protected:
  SchedulerSimulation() {
    engine_ = test::value_of(
        Engine::open({.storage = storage_, .reader = *reader_, .clock = clock_}, checkpoint_,
                     // Almost every expert is read again; a hint might bring a bad one for nobody.
                     {.expert_cache_bytes = 1, .hints = memory::Hints::None}, {}, never_));
    scheduler_ = std::make_unique<Scheduler>(
        *engine_, SchedulerOptions{.sequences = 4, .kept_state_bytes = uint64_t{1} << 30});
  }

  std::shared_ptr<HearingListener> submit(const ScheduledRequest& request) {
    std::shared_ptr<HearingListener> listener = std::make_shared<HearingListener>();
    test::value_of(scheduler_->submit(request, listener));
    return listener;
  }
  void drain() {
    while (scheduler_->step()) continue;
  }

  // Experts of `only` that `others` never need: of the prompt, and of the rest of an answer.
  struct Own {
    std::vector<std::pair<uint32_t, uint32_t>> in_prompt, in_answer;
  };
  Own own_experts(const ScheduledRequest& only, std::span<const ScheduledRequest> others) {
    const auto needed = [&](const ScheduledRequest& request, uint64_t max_tokens) {
      Needed observer;
      ScheduledRequest some = request;
      some.max_tokens = max_tokens;
      engine_->set_observer(&observer);
      alone(*engine_, some);
      engine_->set_observer(nullptr);
      return observer.experts;
    };
    std::set<std::pair<uint32_t, uint32_t>> of_others;
    for (const ScheduledRequest& other : others) of_others.merge(needed(other, other.max_tokens));
    const auto prompt = needed(only, 0), all = needed(only, only.max_tokens);
    Own own;
    for (const auto& expert : all) {
      if (of_others.contains(expert)) continue;
      (prompt.contains(expert) ? own.in_prompt : own.in_answer).push_back(expert);
    }
    return own;
  }

  // Of whole experts.
  void break_experts(std::span<const std::pair<uint32_t, uint32_t>> experts) {
    const checkpoint::Checkpoint checkpoint =
        test::value_of(checkpoint::Checkpoint::open(real_, checkpoint_));
    io::FaultPlan plan;
    for (const auto& [layer, expert] : experts) {
      const checkpoint::TensorLocation& part =
          checkpoint.expert(layer, expert)[size_t(checkpoint::ExpertPart::W1)];
      plan.ranges.push_back(
          {.file = checkpoint.file(part.file).path(), .offset = part.offset, .size = part.size});
    }
    storage_.set_faults(plan);
  }

  const std::string checkpoint_ = test::golden_path(GetParam());
  const CancelToken never_;
  io::PosixStorage real_;
  io::SimulatedStorage storage_{real_};
  SimulatedClock clock_;
  std::unique_ptr<io::Reader> reader_ =
      io::make_simulated_reader({.seed = test::test_seed()}, clock_);
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
};

INSTANTIATE_TEST_SUITE_P(Checkpoints, SchedulerSimulation,
                         testing::Values("tiny-k3", "tiny-qwen3.5-moe"),
                         [](const testing::TestParamInfo<const char*>& checkpoint) {
                           std::string name = checkpoint.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

const std::vector<ScheduledRequest> kThree = {
    {.prompt = {11, 12, 13}, .max_tokens = 6},
    {.prompt = {21, 22}, .max_tokens = 6, .answers = 2},
    {.prompt = {31, 32, 33, 34}, .max_tokens = 6},
};

TEST_P(SchedulerSimulation, AnExpertThatOnePromptNeedsFailsThatRequestAlone) {
  const Own own = own_experts(kThree[1], std::vector{kThree[0], kThree[2]});
  ASSERT_FALSE(own.in_prompt.empty());
  std::vector<test::Heard> expected;
  for (const ScheduledRequest& request : kThree) expected.push_back(alone(*engine_, request));
  break_experts(own.in_prompt);
  std::vector<std::shared_ptr<HearingListener>> listeners;
  for (const ScheduledRequest& request : kThree) listeners.push_back(submit(request));
  drain();
  expect_same(listeners[0]->heard, expected[0], "before the bad one");
  expect_same(listeners[2]->heard, expected[2], "behind the bad one");
  ASSERT_TRUE(listeners[1]->heard.status && !*listeners[1]->heard.status);
  EXPECT_EQ(listeners[1]->heard.status->error().code, ErrorCode::Io);
  EXPECT_THAT(listeners[1]->heard.status->error().what, HasSubstr("safetensors"));
  EXPECT_EQ(listeners[1]->heard.token_count(), 0u);
  // All together, and each by itself.
  EXPECT_EQ(scheduler_->snapshot().prefill_passes, 4u);

  storage_.set_faults({});
  const std::shared_ptr<HearingListener> again = submit(kThree[1]);
  drain();
  expect_same(again->heard, expected[1], "after the disk was healed");
}

TEST_P(SchedulerSimulation, AnExpertThatOneAnswerNeedsFailsThatRequestAlone) {
  // One that needs experts for its answer which nobody needs for anything else.
  std::vector<ScheduledRequest> three = kThree;
  Own own;
  for (TokenId token = 100; own.in_answer.empty(); ++token) {
    ASSERT_LT(token, 200);
    three[0] = {.prompt = {token}, .max_tokens = 6, .sampling = {.temperature = 2}};
    own = own_experts(three[0], std::vector{three[1], three[2]});
  }
  std::vector<test::Heard> expected;
  for (const ScheduledRequest& request : three) expected.push_back(alone(*engine_, request));
  break_experts(own.in_answer);
  std::vector<std::shared_ptr<HearingListener>> listeners;
  for (const ScheduledRequest& request : three) listeners.push_back(submit(request));
  drain();
  expect_same(listeners[1]->heard, expected[1], "two answers");
  expect_same(listeners[2]->heard, expected[2], "one answer");
  ASSERT_TRUE(listeners[0]->heard.status && !*listeners[0]->heard.status);
  EXPECT_EQ(listeners[0]->heard.status->error().code, ErrorCode::Io);
  EXPECT_GE(listeners[0]->heard.token_count(), 1u);
  test::expect_beginning_of(listeners[0]->heard, expected[0], "the bad one");
  EXPECT_EQ(scheduler_->snapshot().prefill_passes, 1u);
}

// A swarm: whatever fails, a request has the right bits or an error, and the next one works.
TEST_P(SchedulerSimulation, RandomFaultsFailSomeRequestsAndNoBits) {
  size_t failed = 0, fine = 0;
  std::vector<test::Heard> expected;
  for (const ScheduledRequest& request : kThree) expected.push_back(alone(*engine_, request));
  for (uint64_t round = 0; round < 12; ++round) {
    storage_.set_faults({.seed = test::test_seed() * 100 + round,
                         .eio_probability = 0.004f,
                         .random_duration = io::FaultDuration::Permanent});
    Scheduler scheduler(*engine_, {.sequences = 4});
    std::vector<std::shared_ptr<HearingListener>> listeners;
    for (const ScheduledRequest& request : kThree) {
      listeners.push_back(std::make_shared<HearingListener>());
      test::value_of(scheduler.submit(request, listeners.back()));
    }
    while (scheduler.step()) continue;
    for (size_t i = 0; i < kThree.size(); ++i) {
      const test::Heard& heard = listeners[i]->heard;
      ASSERT_TRUE(heard.has_ended());
      if (*heard.status) {
        ++fine;
        expect_same(heard, expected[i], "round " + std::to_string(round));
      } else {
        ++failed;
        EXPECT_EQ(heard.status->error().code, ErrorCode::Io);
        test::expect_beginning_of(heard, expected[i], "round " + std::to_string(round));
      }
    }
  }
  EXPECT_GT(failed, 0u);
  EXPECT_GT(fine, 0u);
  storage_.set_faults({});
  const std::shared_ptr<HearingListener> last = submit(kThree[0]);
  drain();
  expect_same(last->heard, expected[0], "after the disk was healed");
}

// Tokens per simulated second, before a long prompt comes and while it is read.
TEST_P(SchedulerSimulation, AnswersKeepHalfOfTheirRateWhileALongPromptIsRead) {
  Random random(test::test_seed());
  std::vector<TokenId> prompt(600);
  for (TokenId& token : prompt) token = TokenId(random.below(380));
  ScheduledRequest reading{.prompt = prompt};
  for (size_t border = 30; border < prompt.size(); border += 30) reading.borders.push_back(border);
  const ScheduledRequest writing{
      .prompt = {5, 6}, .max_tokens = 100'000, .sampling = {.temperature = 2}, .answers = 2};
  const std::shared_ptr<HearingListener> writer = submit(writing);
  while (writer->heard.token_count() < 4) scheduler_->step();
  const auto rate_until = [&](const auto& is_over) {
    const size_t tokens = writer->heard.token_count();
    const std::chrono::nanoseconds start = clock_.now();
    while (!is_over()) scheduler_->step();
    return double(writer->heard.token_count() - tokens) / seconds(clock_.now() - start);
  };
  const double undisturbed = rate_until([&] { return writer->heard.token_count() >= 400; });
  const std::chrono::nanoseconds start = clock_.now();
  const std::shared_ptr<HearingListener> reader = submit(reading);
  const double meanwhile = rate_until([&] { return reader->heard.has_ended(); });
  const std::chrono::nanoseconds shared = clock_.now() - start;
  EXPECT_GE(meanwhile, 0.50 * undisturbed);
  // Other words need other experts, so two rates of the same texts differ by some percent, too.
  EXPECT_LE(meanwhile, 0.62 * undisturbed);
  EXPECT_EQ(scheduler_->snapshot().prefill_passes, 21u);

  // And the prompt has what is left.
  Scheduler quiet(*engine_, {});
  const std::shared_ptr<HearingListener> alone_reader = std::make_shared<HearingListener>();
  test::value_of(quiet.submit(reading, alone_reader));
  const std::chrono::nanoseconds quiet_start = clock_.now();
  while (quiet.step()) continue;
  EXPECT_LE(seconds(shared), 2.4 * seconds(clock_.now() - quiet_start));
}

// Not only when there is nothing else to do. On this clock saving takes no time.
TEST_P(SchedulerSimulation, StatesAreSavedWhileOthersAreAnswered) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("deltafin_busy_" + std::to_string(::getpid()) + "_" + GetParam());
  std::filesystem::remove_all(folder);
  StateDirectory directory = test::value_of(
      StateDirectory::open(real_, folder,
                           {.arithmetic = "canon-1",
                            .identity = {},
                            .vocab_size = engine_->vocab_size(),
                            .max_positions = engine_->contract().max_positions},
                           engine_->state_layout(), {.budget_bytes = uint64_t{1} << 30}));
  Scheduler scheduler(
      *engine_,
      {.sequences = 2, .kept_state_bytes = uint64_t{1} << 30, .state_directory = &directory});
  const std::shared_ptr<HearingListener> writer = std::make_shared<HearingListener>(),
                                         reader = std::make_shared<HearingListener>();
  test::value_of(scheduler.submit({.prompt = {5, 6}, .max_tokens = 100'000}, writer));
  test::value_of(scheduler.submit({.prompt = {7, 8}}, reader));
  while (!reader->heard.has_ended()) scheduler.step();
  scheduler.step();
  EXPECT_EQ(directory.count(), 1u);
  EXPECT_FALSE(writer->heard.has_ended());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace deltafin::engine
