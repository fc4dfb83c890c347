#include "cli/chat_timeline.h"

#include <gtest/gtest.h>

#include "cli/model_loading.h"

namespace deltafin::cli {
namespace {

using Ids = std::vector<TokenId>;

constexpr const char* kModel = DELTAFIN_SOURCE_DIR "/models/demo";

class ChatTimelineTest : public testing::Test {
 protected:
  static engine::Engine& engine() {
    static const io::PosixStorage storage;
    static ModelPreparation preparation = ModelPreparation::create(storage, kModel, {}).value();
    static const std::unique_ptr<LoadedModel> model =
        LoadedModel::open(preparation, CancelToken()).value();
    return model->engine();
  }
  static engine::GenerationResult answer(ChatTimeline& timeline, const Ids& ids, size_t lasting,
                                         const CancelToken& cancel = {}) {
    engine::GenerateRequest request;
    request.max_tokens = 3;
    engine::GenerationListener listener;
    return timeline.answer({ids, lasting}, request, listener, cancel).value();
  }
  static Ids fresh(const Ids& ids) {
    engine::Sequence sequence = engine().new_sequence();
    engine::GenerateRequest request;
    request.prompt = ids;
    request.max_tokens = 3;
    engine::GenerationListener listener;
    return engine::generate(engine(), sequence, request, listener, {}).value().tokens;
  }
  static Ids joined(Ids ids, const Ids& more) {
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  }

  ChatTimeline timeline_{engine()};
  const Ids first_ = {100, 101, 102, 103, 104};
};

TEST_F(ChatTimelineTest, GoesOnBehindTheLastAnswer) {
  const Ids answered = answer(timeline_, first_, first_.size()).tokens;
  EXPECT_EQ(answered, fresh(first_));
  EXPECT_EQ(timeline_.last_turn().reused, 0u);
  EXPECT_EQ(timeline_.last_turn().read, 5u);
  EXPECT_EQ(timeline_.last_turn().generated, 3u);
  const Ids second = joined(joined(first_, answered), {200, 201});
  EXPECT_EQ(answer(timeline_, second, second.size()).tokens, fresh(second));
  // The last token of the answer had not been read.
  EXPECT_EQ(timeline_.last_turn().reused, 7u);
  EXPECT_EQ(timeline_.last_turn().read, 3u);
  EXPECT_EQ(timeline_.all_turns().read, 8u);
}

TEST_F(ChatTimelineTest, GoesOnFromTheBorderWhenTheAnswerIsWrittenOtherwise) {
  EXPECT_EQ(answer(timeline_, first_, 3).tokens, fresh(first_));
  const Ids second = {100, 101, 102, 200, 201};
  EXPECT_EQ(answer(timeline_, second, 4).tokens, fresh(second));
  EXPECT_EQ(timeline_.last_turn().reused, 3u);
  const Ids third = {100, 101, 102, 200, 300};
  EXPECT_EQ(answer(timeline_, third, 5).tokens, fresh(third));
  EXPECT_EQ(timeline_.last_turn().reused, 4u);
  const Ids other = {1, 2, 3};
  EXPECT_EQ(answer(timeline_, other, 3).tokens, fresh(other));
  EXPECT_EQ(timeline_.last_turn().reused, 0u);
}

TEST_F(ChatTimelineTest, AnInterruptBeforeTheAnswerLeavesNothing) {
  const Ids answered = answer(timeline_, first_, 3).tokens;
  const uint64_t count = timeline_.position_count();
  CancelToken cancel;
  cancel.cancel();
  const engine::GenerationResult nothing = answer(timeline_, {1, 2, 3, 4}, 4, cancel);
  EXPECT_EQ(nothing.reason, engine::StopReason::Interrupted);
  EXPECT_EQ(timeline_.position_count(), count);
  EXPECT_EQ(timeline_.last_turn().read, 5u);
  const Ids second = joined(joined(first_, answered), {200});
  EXPECT_EQ(answer(timeline_, second, second.size()).tokens, fresh(second));
  EXPECT_EQ(timeline_.last_turn().reused, 7u);
}

TEST_F(ChatTimelineTest, AfterClearNothingIsReused) {
  answer(timeline_, first_, 5);
  timeline_.clear();
  EXPECT_EQ(timeline_.position_count(), 0u);
  EXPECT_EQ(answer(timeline_, joined(first_, {7}), 6).tokens, fresh(joined(first_, {7})));
  EXPECT_EQ(timeline_.last_turn().reused, 0u);
}

}  // namespace
}  // namespace deltafin::cli
