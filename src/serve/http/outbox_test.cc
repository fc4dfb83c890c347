#include "serve/http/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/http/pushed_stream.h"

namespace deltafin::serve {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using Phase = Outbox::Phase;

class OutboxTest : public ::testing::Test {
 protected:
  std::shared_ptr<Outbox> outbox(ResponseForm form = {}) {
    return std::make_shared<Outbox>(loop_, std::move(form), [this] { ++wakes_; });
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

TEST_F(OutboxTest, AsksASourceForWhatIsNext) {
  const auto box = outbox();
  PushedStream stream(Reply(std::make_shared<Reply::State>(box)));
  stream.write("one");
  stream.write("two");
  EXPECT_THAT(take(*box, Phase::Streaming), EndsWith("\r\n\r\n"));
  EXPECT_EQ(take(*box, Phase::Streaming), "3\r\none\r\n");
  EXPECT_EQ(take(*box, Phase::Streaming), "3\r\ntwo\r\n");
  EXPECT_EQ(take(*box, Phase::Streaming), "");
  stream.end();
  EXPECT_EQ(take(*box, Phase::Ended), "0\r\n\r\n");
  EXPECT_EQ(take(*box, Phase::Ended), "");
}

TEST_F(OutboxTest, WakesOnceUntilItIsEmptied) {
  const auto box = outbox();
  PushedStream stream(Reply(std::make_shared<Reply::State>(box)));
  stream.write("a");
  stream.write("b");
  take(*box, Phase::Streaming);
  stream.write("c");
  stream.end();
  run();
  EXPECT_EQ(wakes_, 2);
}

TEST_F(OutboxTest, BreaksOffWhereASourceFails) {
  const auto box = outbox();
  PushedStream stream(Reply(std::make_shared<Reply::State>(box)));
  stream.write("one");
  stream.break_off();
  take(*box, Phase::Streaming);
  EXPECT_EQ(take(*box, Phase::Streaming), "3\r\none\r\n");
  EXPECT_EQ(take(*box, Phase::Broken), "");
  EXPECT_EQ(take(*box, Phase::Broken), "");
}

TEST_F(OutboxTest, ASourceOutlivesHandlesAndNotTheClient) {
  const auto held = std::make_shared<int>(0);
  const auto source = [held]() -> std::optional<std::string> { return ""; };
  const auto box = outbox();
  Reply(std::make_shared<Reply::State>(box)).stream(200, "text/plain", source);
  EXPECT_THAT(take(*box, Phase::Streaming), EndsWith("\r\n\r\n"));
  EXPECT_EQ(take(*box, Phase::Streaming), "");
  EXPECT_EQ(held.use_count(), 3);
  box->close();
  EXPECT_EQ(held.use_count(), 2);

  const auto head = outbox({.head_only = true});
  head->stream(200, "text/plain", source, {});
  EXPECT_THAT(take(*head, Phase::Ended), EndsWith("\r\n\r\n"));
  EXPECT_EQ(held.use_count(), 2);
}

TEST_F(OutboxTest, TheFirstAnswerIsTheOnlyOne) {
  const auto stream = outbox();
  PushedStream pushed(Reply(std::make_shared<Reply::State>(stream)));
  stream->send(500, "text/plain", "no", {});
  PushedStream second(Reply(std::make_shared<Reply::State>(stream)));
  second.write("no");
  EXPECT_THAT(take(*stream, Phase::Streaming), HasSubstr("200 OK"));
  EXPECT_EQ(take(*stream, Phase::Streaming), "");
}

TEST_F(OutboxTest, AnswersWhenTheLastHandleIsDropped) {
  const auto box = outbox();
  {
    const Reply first(std::make_shared<Reply::State>(box));
    const Reply second = first;
  }
  EXPECT_THAT(take(*box, Phase::Ended), HasSubstr("HTTP/1.1 500 "));
}

TEST_F(OutboxTest, CallsBackOnceWhenTheClientGoes) {
  const auto box = outbox();
  int calls = 0;
  box->on_gone([&] { ++calls; });
  box->on_gone([&] { ++calls; });
  box->close();
  box->close();
  EXPECT_EQ(calls, 2);
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
