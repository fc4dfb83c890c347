#include "serve/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/http/outbox.h"

namespace deltafin::serve {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using Phase = Outbox::Phase;

// A client that takes when it is told to.
class Client {
 public:
  Client(Job& job, size_t after) {
    job.attach(Reply(std::make_shared<Reply::State>(outbox_)), after);
  }
  ~Client() { outbox_->close(); }

  // One piece; HTTP/1.0, so there are no chunks around it.
  std::string take() {
    std::string bytes;
    phase_ = outbox_->take(bytes);
    return bytes;
  }
  std::string take_all() {
    std::string all;
    for (std::string piece = take(); !piece.empty(); piece = take()) all += piece;
    return all.substr(all.find("\r\n\r\n") + 4);
  }
  void go() { outbox_->close(); }
  bool has_all() const { return phase_ == Phase::Ended; }

 private:
  std::shared_ptr<Outbox> outbox_ = std::make_shared<Outbox>(
      std::make_shared<EventLoop>(), ResponseForm{.http_1_1 = false}, [] {});
  Phase phase_ = Phase::Waiting;
};

TEST(Job, EveryReaderGetsTheWholeStreamWheneverHeComes) {
  const auto job = std::make_shared<Job>("x", AnswerForm::Stream);
  Client early(*job, 0), idle(*job, 0);
  job->add_event("a ");
  EXPECT_EQ(early.take_all(), "a ");
  job->add_event("b ");
  Client second(*job, 1), beyond(*job, 3);
  EXPECT_EQ(second.take_all(), "b ");
  EXPECT_EQ(beyond.take_all(), "");
  job->add_event("c ");
  job->add_event("d ");
  job->end_stream();
  Client late(*job, 0);
  for (Client* client : {&idle, &late}) EXPECT_EQ(client->take_all(), "a b c d ");
  EXPECT_EQ(beyond.take(), "d ");
  for (Client* client : {&idle, &late, &beyond}) {
    EXPECT_EQ(client->take(), "");
    EXPECT_TRUE(client->has_all());
  }
}

TEST(Job, HandsOverALongStreamBitByBit) {
  const auto job = std::make_shared<Job>("x", AnswerForm::Stream);
  const std::string event(10'000, 'x');
  for (int i = 0; i < 1000; ++i) job->add_event(event);
  job->end_stream();
  Client client(*job, 0);
  EXPECT_THAT(client.take(), EndsWith("\r\n\r\n"));
  EXPECT_LT(client.take().size(), 100'000u);
  EXPECT_FALSE(client.has_all());
}

TEST(Job, OnlyWhoHasReadEverythingHearsThatItGoesOn) {
  const auto job = std::make_shared<Job>("x", AnswerForm::Stream);
  Client reads(*job, 0), sleeps(*job, 0);
  job->add_event("a ");
  reads.take_all();
  for (int i = 0; i < 1000; ++i) job->comment(": still here ");
  EXPECT_EQ(reads.take(), ": still here ");
  EXPECT_EQ(reads.take(), "");
  EXPECT_EQ(sleeps.take_all(), "a ");
}

TEST(Job, AFailureIsAnEventAndTheEnd) {
  const auto job = std::make_shared<Job>("x", AnswerForm::Stream);
  Client client(*job, 0);
  job->add_event("a ");
  job->fail({.status = 500, .message = "no", .type = "server_error"});
  EXPECT_THAT(client.take_all(), HasSubstr("\"no\""));
  EXPECT_TRUE(client.has_all());
}

TEST(Job, IsAbandonedByItsLastListener) {
  const auto job = std::make_shared<Job>("x", AnswerForm::Stream);
  int calls = 0;
  job->on_abandoned([&] { ++calls; });
  Client first(*job, 0), second(*job, 0);
  first.go();
  EXPECT_EQ(calls, 0);
  second.go();
  EXPECT_EQ(calls, 1);
}

// A stream and its reader hold each other while it goes on.
TEST(Job, NobodyHoldsItAfterwards) {
  std::weak_ptr<Job> gone, ended;
  {
    const auto job = std::make_shared<Job>("x", AnswerForm::Stream);
    gone = job;
    Client(*job, 0).take_all();
  }
  EXPECT_TRUE(gone.expired());
  {
    const auto job = std::make_shared<Job>("x", AnswerForm::Stream);
    ended = job;
    Client client(*job, 0);
    job->end_stream();
    client.take_all();
    client.take();
  }
  EXPECT_TRUE(ended.expired());
}

}  // namespace
}  // namespace deltafin::serve
