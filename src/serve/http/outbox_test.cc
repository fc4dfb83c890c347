#include "serve/http/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deltafin::serve {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using Phase = Outbox::Phase;

class OutboxTest : public ::testing::Test {
 protected:
  std::shared_ptr<Outbox> outbox(AnswerForm form = {}, size_t stream_bytes = 1000) {
    return std::make_shared<Outbox>(loop_, std::move(form), stream_bytes, [this] { ++wakes_; });
  }
  // Runs what was posted; the loop is closed then.
  void run() {
    loop_->close();
    loop_->run();
  }
  static std::string take(Outbox& outbox, Phase phase) {
    std::string bytes;
    EXPECT_EQ(outbox.take(bytes), phase);
    return bytes;
  }

  std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>();
  int wakes_ = 0;
};

TEST_F(OutboxTest, WakesOnceUntilItIsEmptied) {
  const auto box = outbox();
  box->begin(200, "text/plain", {});
  box->write("a");
  box->write("b");
  EXPECT_THAT(take(*box, Phase::Streaming), EndsWith("\r\n\r\n1\r\na\r\n1\r\nb\r\n"));
  box->end();
  EXPECT_EQ(take(*box, Phase::Ended), "0\r\n\r\n");
  EXPECT_EQ(take(*box, Phase::Ended), "");
  run();
  EXPECT_EQ(wakes_, 2);
}

TEST_F(OutboxTest, CountsWhatWaitsAndWhatIsBeingSent) {
  const auto box = outbox({}, 1000);
  box->begin(200, "text/plain", {});
  take(*box, Phase::Streaming);
  EXPECT_FALSE(box->write(std::string(1001, 'x')));  // behind a head that is not yet sent
  EXPECT_TRUE(box->gone());

  const auto slow = outbox({}, 1000);
  slow->begin(200, "text/plain", {});
  take(*slow, Phase::Streaming);
  slow->sent();
  EXPECT_TRUE(slow->write(std::string(600, 'x')));
  take(*slow, Phase::Streaming);
  EXPECT_FALSE(slow->write(std::string(600, 'x')));
  EXPECT_EQ(take(*slow, Phase::GivenUp), "");
}

TEST_F(OutboxTest, TakesAnyPieceWhenNothingWaits) {
  const auto box = outbox({}, 1000);
  box->begin(200, "text/plain", {});
  take(*box, Phase::Streaming);
  box->sent();
  EXPECT_TRUE(box->write(std::string(5000, 'x')));
}

TEST_F(OutboxTest, IgnoresEmptyPieces) {
  const auto box = outbox();
  box->begin(200, "text/plain", {});
  take(*box, Phase::Streaming);
  EXPECT_TRUE(box->write(""));
  EXPECT_EQ(take(*box, Phase::Streaming), "");
}

TEST_F(OutboxTest, HasNoBodyForHead) {
  const auto box = outbox({.head_only = true});
  box->begin(200, "text/plain", {});
  EXPECT_TRUE(box->write("body"));
  box->end();
  EXPECT_THAT(take(*box, Phase::Ended), EndsWith("\r\n\r\n"));
}

TEST_F(OutboxTest, BreaksOffWhenItIsUsedWrongly) {
  const auto twice = outbox();
  twice->begin(200, "text/plain", {});
  twice->begin(200, "text/plain", {});
  take(*twice, Phase::Broken);
  const auto both = outbox();
  both->begin(200, "text/plain", {});
  both->send(200, "text/plain", "x", {});
  take(*both, Phase::Broken);
  const auto headless = outbox();
  EXPECT_FALSE(headless->write("x"));
  headless->end();
  EXPECT_EQ(take(*headless, Phase::Broken), "");
}

TEST_F(OutboxTest, AnswersWhenTheLastHandleIsDropped) {
  const auto box = outbox();
  {
    const Reply first(std::make_shared<Reply::State>(box));
    const Reply second = first;
  }
  EXPECT_THAT(take(*box, Phase::Ended), HasSubstr("HTTP/1.1 500 "));
  const auto stream = outbox();
  {
    Reply reply(std::make_shared<Reply::State>(stream));
    reply.begin(200, "text/plain");
  }
  take(*stream, Phase::Broken);
}

TEST_F(OutboxTest, CallsBackOnceWhenTheClientGoes) {
  const auto box = outbox();
  int calls = 0;
  box->on_gone([&] { ++calls; });
  box->on_gone([&] { ++calls; });
  box->close();
  box->close();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(box->gone());
}

TEST_F(OutboxTest, CallsBackLaterWhenTheClientHasGone) {
  const auto box = outbox();
  box->close();
  int calls = 0;
  box->on_gone([&] { ++calls; });
  EXPECT_EQ(calls, 0);  // the caller may hold a lock that the callback wants
  run();
  EXPECT_EQ(calls, 1);
  box->on_gone([&] { ++calls; });  // nobody else is left to do it
  EXPECT_EQ(calls, 2);
}

TEST_F(OutboxTest, CallsNobodyBackAfterTheEnd) {
  const auto box = outbox();
  const auto held = std::make_shared<int>(0);
  box->on_gone([held] { ++*held; });
  box->send(200, "text/plain", "x", {});
  box->on_gone([held] { ++*held; });
  take(*box, Phase::Ended);
  EXPECT_EQ(held.use_count(), 1);  // nor keeps what it would have called
  box->close();
  EXPECT_EQ(*held, 0);
}

}  // namespace
}  // namespace deltafin::serve
