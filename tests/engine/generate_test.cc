// Generation: what stops it, what it commits, what its listener hears.
#include "engine/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/engine_fixture.h"
#include "support/golden.h"

namespace deltafin::engine {
namespace {

using test::EngineFixture;

class Listener : public GenerationListener {
 public:
  void on_prefill(const PrefillProgress& progress) override {
    fractions.push_back(progress.fraction());
  }
  void on_token(TokenId token, std::span<const float> logits) override {
    tokens.push_back(token);
    argmaxes.push_back(argmax(logits));
  }
  std::vector<double> fractions;
  std::vector<TokenId> tokens, argmaxes;
};

class Generate : public testing::Test {
 protected:
  Generate() {
    request_.prompt = test::to_tokens(golden_.i32("p0.ids"));
    expected_ = test::to_tokens(golden_.i32("p0.greedy"));
    request_.max_tokens = 8;
  }
  GenerationResult run() {
    return test::value_of(generate(fixture_.engine(), sequence_, request_, listener_, cancel_));
  }

  test::Golden golden_{"golden-k3"};
  EngineFixture fixture_{test::golden_path("tiny-k3")};
  Sequence sequence_ = fixture_.engine().new_sequence();
  GenerateRequest request_;
  std::vector<TokenId> expected_;
  Listener listener_;
  CancelToken cancel_;
};

TEST_F(Generate, StopsAfterMaxTokens) {
  const GenerationResult result = run();
  EXPECT_EQ(result.reason, StopReason::MaxTokens);
  EXPECT_EQ(result.tokens, std::vector<TokenId>(expected_.begin(), expected_.begin() + 8));
  EXPECT_EQ(listener_.tokens, result.tokens);
  EXPECT_EQ(listener_.argmaxes, result.tokens);
  // Everything but the last token is committed, so a follow-up prefills one token and its own
  // words.
  EXPECT_EQ(sequence_.position_count(), request_.prompt.size() + 7);
  EXPECT_EQ(result.decode_passes, 7u);
}

TEST_F(Generate, StopsAtAStopTokenWhichIsNotPartOfTheAnswer) {
  request_.stop_tokens = {expected_[3]};
  const GenerationResult result = run();
  EXPECT_EQ(result.reason, StopReason::StopToken);
  EXPECT_EQ(result.tokens, std::vector<TokenId>(expected_.begin(), expected_.begin() + 3));
  EXPECT_EQ(listener_.tokens.size(), 4u);
}

TEST_F(Generate, OfNothingIsAPrefill) {
  request_.max_tokens = 0;
  const GenerationResult result = run();
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_EQ(sequence_.position_count(), request_.prompt.size());
}

TEST_F(Generate, ReportsProgressThatRisesToOne) {
  request_.prefill_rows = 3;
  run();
  EXPECT_TRUE(std::ranges::is_sorted(listener_.fractions));
  EXPECT_DOUBLE_EQ(listener_.fractions.back(), 1.0);
  const size_t passes = (request_.prompt.size() + 2) / 3;
  EXPECT_EQ(listener_.fractions.size(), passes * fixture_.engine().layer_count());
}

TEST_F(Generate, KeepsWhatItHasWhenInterrupted) {
  class Interrupter final : public Listener {
   public:
    explicit Interrupter(CancelToken& token) : token_(token) {}
    void on_token(TokenId token, std::span<const float> logits) override {
      Listener::on_token(token, logits);
      if (tokens.size() == 3) token_.cancel();
    }

   private:
    CancelToken& token_;
  };
  Interrupter listener(cancel_);
  const GenerationResult result =
      test::value_of(generate(fixture_.engine(), sequence_, request_, listener, cancel_));
  EXPECT_EQ(result.reason, StopReason::Interrupted);
  EXPECT_EQ(result.tokens, std::vector<TokenId>(expected_.begin(), expected_.begin() + 3));
}

TEST_F(Generate, InterruptedInPrefillHasNoToken) {
  cancel_.cancel();
  const GenerationResult result = run();
  EXPECT_EQ(result.reason, StopReason::Interrupted);
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_EQ(sequence_.position_count(), 0u);
}

TEST_F(Generate, ContinuesASequence) {
  run();
  // The last token was not committed: give it, and go on.
  request_.prompt = {expected_[7]};
  EXPECT_EQ(run().tokens, std::vector<TokenId>(expected_.begin() + 8, expected_.begin() + 16));
}

TEST_F(Generate, RefusesAnEmptyPromptAndBadParameters) {
  GenerateRequest bad = request_;
  bad.prompt.clear();
  EXPECT_EQ(generate(fixture_.engine(), sequence_, bad, listener_, cancel_).error().code,
            ErrorCode::Usage);
  bad = request_;
  bad.sampling.top_p = 2;
  EXPECT_EQ(generate(fixture_.engine(), sequence_, bad, listener_, cancel_).error().code,
            ErrorCode::Usage);
}

TEST_F(Generate, SampledAnswersDependOnTheSeedAlone) {
  request_.sampling = {.temperature = 1.5f, .seed = 11};
  const GenerationResult first = run();
  sequence_ = fixture_.engine().new_sequence();
  request_.prefill_rows = 1;
  EXPECT_EQ(run().tokens, first.tokens);
  sequence_ = fixture_.engine().new_sequence();
  request_.sampling.seed = 12;
  EXPECT_NE(run().tokens, first.tokens);
}

}  // namespace
}  // namespace deltafin::engine
