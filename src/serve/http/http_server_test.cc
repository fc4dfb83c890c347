#include "serve/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/philox.h"
#include "serve/http/pushed_stream.h"
#include "serve/http/test_client.h"

namespace deltafin::serve {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";

std::string post(std::string_view body, std::string_view more_headers = "") {
  return "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n" + std::string(more_headers) + "\r\n" +
         std::string(body);
}

// Waits until something is true that another thread makes so.
template <class Condition>
bool soon(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + TestClient::kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() { options_.port = 0; }

  void start(HttpServer::Handler handler) {
    auto server = HttpServer::start(options_, /*insecure=*/false, std::move(handler));
    ASSERT_TRUE(server) << server.error().what;
    server_ = *std::move(server);
  }
  // Answers with method, path, query and body.
  void start_echo() {
    start([](const HttpRequest& request, Reply reply) {
      reply.send(200, "text/plain",
                 request.method + " " + request.path + "?" + request.query + " " + request.body);
    });
  }
  // Keeps the replies of all requests.
  void start_keeping() {
    start([this](const HttpRequest&, Reply reply) {
      const std::lock_guard lock(mutex_);
      replies_.push_back(std::move(reply));
    });
  }
  Reply reply(size_t index) {
    EXPECT_TRUE(soon([&] {
      const std::lock_guard lock(mutex_);
      return replies_.size() > index;
    }));
    const std::lock_guard lock(mutex_);
    return replies_.at(index);
  }

  HttpOptions options_;
  std::mutex mutex_;
  std::vector<Reply> replies_;
  std::atomic<int> calls_ = 0;          // of on_gone
  std::unique_ptr<HttpServer> server_;  // the first to go: it may call back until then
};

TEST_F(HttpServerTest, AnswersARequest) {
  start_echo();
  TestClient client(server_->port());
  client.send("GET /a%20b?q=%20 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string answer = client.receive_answer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nGET /a b?q=%20 "));
}

TEST_F(HttpServerTest, KeepsTheConnection) {
  start_echo();
  TestClient client(server_->port());
  for (const char* body : {"one", "two", "three"}) {
    client.send(post(body));
    EXPECT_THAT(client.receive_answer(), EndsWith(body));
  }
  EXPECT_EQ(server_->snapshot().connections, 1u);
  EXPECT_EQ(server_->snapshot().requests, 3u);
}

TEST_F(HttpServerTest, StreamsPieceByPiece) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  PushedStream stream(reply(0));
  EXPECT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_THAT(client.received(), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(client.received(), HasSubstr("Cache-Control: no-cache\r\n"));
  EXPECT_THAT(client.received(), HasSubstr("X-Accel-Buffering: no\r\n"));
  EXPECT_THAT(client.received(), HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  for (const std::string piece : {"data: a\n\n", "data: b\n\n"}) {
    stream.write(piece);
    EXPECT_TRUE(client.receive_until("9\r\n" + piece + "\r\n"));
  }
  stream.end();
  EXPECT_TRUE(client.receive_until("0\r\n\r\n"));
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsOneAfterTheOther) {
  start_keeping();
  TestClient client(server_->port());
  client.send(post("first") + post("second") + post("third"));
  reply(0).send(200, "text/plain", "1");
  EXPECT_THAT(client.receive_answer(), EndsWith("\r\n1"));
  reply(1).send(200, "text/plain", "2");
  EXPECT_THAT(client.receive_answer(), EndsWith("\r\n2"));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_LE(replies_.size(), 3u);
  }
  reply(2).send(200, "text/plain", "3");
  EXPECT_THAT(client.receive_answer(), EndsWith("\r\n3"));
}

TEST_F(HttpServerTest, LooksAtOneRequestOfAConnectionAtATime) {
  start_keeping();
  TestClient client(server_->port());
  client.send(std::string(kGet) + std::string(kGet));
  PushedStream first(reply(0), "text/plain");
  client.receive_until("\r\n\r\n");
  EXPECT_EQ(server_->snapshot().requests, 1u);
  first.end();
  reply(1);
}

TEST_F(HttpServerTest, TakesAnEmptyLineBehindABody) {
  start_echo();
  TestClient client(server_->port());
  client.send(post("one") + "\r\n");
  client.receive_answer();
  client.send(post("two"));
  EXPECT_THAT(client.receive_answer(), EndsWith("two"));
}

TEST_F(HttpServerTest, TakesChunkedBodies) {
  start_echo();
  TestClient client(server_->port());
  client.send(
      "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.send("2\r\nde\r\n0\r\n\r\n" + std::string(kGet));
  EXPECT_THAT(client.receive_answer(), EndsWith("abcde"));
  EXPECT_THAT(client.receive_answer(), EndsWith("GET /x? "));
}

TEST_F(HttpServerTest, TakesLargeBodiesAndGivesLargeAnswers) {
  start_echo();
  const std::string large(3'000'000, 'x');
  TestClient client(server_->port());
  client.send(post(large));
  const std::string answer = client.receive_answer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, EndsWith(" " + large));
}

TEST_F(HttpServerTest, ALargeBodyHoldsUpNobody) {
  options_.limits.body_bytes_at_once = 1000;
  std::mutex busy;
  std::unique_lock lock(busy);
  start([&](const HttpRequest& request, Reply reply) {
    if (request.body.size() > 1000) const std::lock_guard wait(busy);
    reply.send(200, "text/plain", std::to_string(request.body.size()));
  });
  TestClient large(server_->port()), small(server_->port()), second(server_->port());
  large.send(post(std::string(1001, 'x')));
  second.send(post(std::string(2000, 'x')));
  small.send(post(std::string(1000, 'x')));
  EXPECT_THAT(small.receive_answer(), EndsWith("1000"));
  EXPECT_EQ(large.received(), "");
  lock.unlock();
  EXPECT_THAT(large.receive_answer(), EndsWith("1001"));
  EXPECT_THAT(second.receive_answer(), EndsWith("2000"));
}

// A body counts until somebody has read it.
TEST_F(HttpServerTest, BoundsTheLargeBodiesThatWait) {
  options_.limits.body_bytes_at_once = 1000;
  options_.limits.body_bytes_of_all = 5000;
  std::mutex busy;
  std::unique_lock lock(busy);
  start([&](const HttpRequest& request, Reply reply) {
    if (request.body.size() > 1000) const std::lock_guard wait(busy);
    reply.send(200, "text/plain", "");
  });
  TestClient first(server_->port()), second(server_->port());
  first.send(post(std::string(2000, 'x')));
  second.send(post(std::string(2000, 'x')));
  // Until both are there.
  EXPECT_TRUE(soon([&] {
    TestClient third(server_->port());
    third.send(post(std::string(2000, 'x'), "Connection: close\r\n"));
    return third.receive(milliseconds(50)) && third.received().starts_with("HTTP/1.1 503 ");
  }));
  lock.unlock();
  EXPECT_THAT(first.receive_answer(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(second.receive_answer(), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(soon([&] {
    TestClient again(server_->port());
    again.send(post(std::string(4900, 'x')));
    return again.receive_answer().starts_with("HTTP/1.1 200");
  }));
}

TEST_F(HttpServerTest, EndsWithLargeBodiesThatWait) {
  options_.limits.body_bytes_at_once = 1000;
  start([&](const HttpRequest&, Reply reply) {
    ++calls_;
    std::this_thread::sleep_for(milliseconds(50));
    reply.send(200, "text/plain", "");
  });
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(std::make_unique<TestClient>(server_->port()));
    clients.back()->send(post(std::string(2000, 'x')));
  }
  EXPECT_TRUE(soon([&] { return calls_ > 0; }));
  server_.reset();
  EXPECT_LT(calls_, 40);  // those that waited are not looked at any more
}

TEST_F(HttpServerTest, SaysContinueToWhoWaitsForIt) {
  start_echo();
  TestClient client(server_->port());
  client.send(
      "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_EQ(client.received(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ab");
  EXPECT_TRUE(client.receive_until("POST /x? ab"));
}

TEST_F(HttpServerTest, RefusesInsteadOfSayingContinue) {
  options_.api_key = "secret";
  start_echo();
  TestClient client(server_->port());
  client.send(
      "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 401 "));
}

TEST_F(HttpServerTest, LeavesTheBodyOutForHead) {
  start_echo();
  TestClient client(server_->port());
  client.send("HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_THAT(client.received(), HasSubstr("Content-Length: 9\r\n"));
  EXPECT_THAT(client.received(), EndsWith("\r\n\r\n"));
  client.send("GET /y HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.receive_all(), Not(HasSubstr("HEAD")));
}

TEST_F(HttpServerTest, SpeaksHttp10WithoutChunks) {
  start_keeping();
  TestClient client(server_->port());
  client.send("GET /x HTTP/1.0\r\n\r\n");
  PushedStream stream(reply(0));
  stream.write("data: a\n\n");
  stream.end();
  const std::string answer = client.receive_all();
  EXPECT_THAT(answer, Not(HasSubstr("Transfer-Encoding")));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\ndata: a\n\n"));
}

TEST_F(HttpServerTest, ClosesWhenAskedTo) {
  start_echo();
  TestClient client(server_->port());
  client.send("GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.receive_all(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, BreaksOffAfterWhatWasWritten) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  PushedStream stream(reply(0));
  stream.write("data: error\n\n");
  stream.break_off();
  EXPECT_THAT(client.receive_all(), EndsWith("d\r\ndata: error\n\n\r\n"));
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, AnswersForAHandlerThatDoesNot) {
  start([](const HttpRequest&, const Reply&) {});
  TestClient client(server_->port());
  client.send(kGet);
  EXPECT_THAT(client.receive_answer(), StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, SurvivesAHandlerThatThrows) {
  start([](const HttpRequest&, const Reply&) { throw std::runtime_error("no"); });
  TestClient client(server_->port());
  client.send(kGet);
  EXPECT_THAT(client.receive_answer(), StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, TakesTheFirstEndForTheOnlyOne) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  reply(0).send(200, "text/plain", "yes");
  reply(0).send(500, "text/plain", "no");
  EXPECT_THAT(client.receive_answer(), EndsWith("yes"));
}

TEST_F(HttpServerTest, KeepsClientTextOutOfTheHeaders) {
  start([](const HttpRequest&, Reply reply) {
    reply.send(200, "text/plain", "", {{"X-Request-Id", "a\r\nSet-Cookie: b"}});
  });
  TestClient client(server_->port());
  client.send(kGet);
  EXPECT_THAT(client.receive_answer(), HasSubstr("\r\nX-Request-Id: a  Set-Cookie: b\r\n"));
}

// --- the client goes ---------------------------------------------------------------------------

TEST_F(HttpServerTest, NoticesThatTheClientHasGoneWhileItWaits) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  reply(0).on_gone([&] { ++calls_; });
  client.reset();
  EXPECT_TRUE(soon([&] { return calls_ == 1; }));
  reply(0).send(200, "text/plain", "late");
  server_.reset();
  EXPECT_EQ(calls_, 1);
}

TEST_F(HttpServerTest, NoticesThatTheClientHasGoneWhileItStreams) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  PushedStream stream(reply(0));
  reply(0).on_gone([&] { ++calls_; });
  stream.write("data: a\n\n");
  client.receive_until("data: a");
  client.close();
  EXPECT_TRUE(soon([&] {
    stream.write(": still here\n\n");
    return calls_ == 1;
  }));
  server_.reset();
  EXPECT_EQ(calls_, 1);
}

TEST_F(HttpServerTest, NoticesThatTheClientHasGoneBehindUnreadRequests) {
  options_.limits.header_bytes = 512;
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  reply(0).on_gone([&] { ++calls_; });
  client.send(post(std::string(100'000, 'x')));
  client.reset();
  EXPECT_TRUE(soon([&] { return calls_ == 1; }));
}

TEST_F(HttpServerTest, TellsWhoAsksAfterTheClientHasGone) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  Reply gone = reply(0);
  client.reset();
  EXPECT_TRUE(soon([&] { return server_->snapshot().connections_now == 0; }));
  gone.on_gone([&] { ++calls_; });
  EXPECT_TRUE(soon([&] { return calls_ == 1; }));
  server_.reset();
  gone.on_gone([&] { ++calls_; });
  EXPECT_EQ(calls_, 2);
}

TEST_F(HttpServerTest, SaysNothingOfClientsThatGoAfterTheEnd) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  reply(0).on_gone([&] { ++calls_; });
  reply(0).send(200, "text/plain", "all");
  client.receive_answer();
  client.reset();
  EXPECT_TRUE(soon([&] { return server_->snapshot().connections_now == 0; }));
  EXPECT_EQ(calls_, 0);
}

TEST_F(HttpServerTest, AnswersAClientThatShutItsSendingSide) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  client.shut_sending();
  reply(0).on_gone([&] { ++calls_; });
  PushedStream stream(reply(0));
  EXPECT_TRUE(client.receive_until("\r\n\r\n"));
  stream.write("data: a\n\n");
  EXPECT_TRUE(client.receive_until("data: a"));
  stream.end();
  EXPECT_THAT(client.receive_all(), EndsWith("0\r\n\r\n"));
  EXPECT_EQ(calls_, 0);
}

TEST_F(HttpServerTest, AnswersAllThatWasPipelinedBeforeTheSendingSideWasShut) {
  start_echo();
  TestClient client(server_->port());
  client.send(post("one") + post("two"));
  client.shut_sending();
  EXPECT_TRUE(client.receive_until("one"));
  EXPECT_TRUE(client.receive_until("two"));
  client.receive_all();
  EXPECT_TRUE(client.ended());
}

// A client that closes while it waits and one that only shuts its sending side send the same. What
// tells them apart is an interim response.
TEST_F(HttpServerTest, NoticesThatAWaitingClientHasClosed) {
  start_keeping();
  TestClient shut(server_->port()), closed(server_->port());
  shut.send(kGet);
  reply(0).on_gone([&] { calls_ += 100; });
  closed.send(kGet);
  reply(1).on_gone([&] { ++calls_; });
  shut.shut_sending();
  closed.close();
  EXPECT_TRUE(soon([&] { return calls_ == 1; }));
  EXPECT_TRUE(shut.receive_until("\r\n\r\n"));
  EXPECT_EQ(shut.received(), "HTTP/1.1 100 Continue\r\n\r\n");
  reply(0).send(200, "text/plain", "still here");
  EXPECT_TRUE(shut.receive_until("still here"));
  EXPECT_EQ(calls_, 1);
}

TEST_F(HttpServerTest, SendsNothingInterimToHttp10) {
  start_keeping();
  TestClient client(server_->port());
  client.send("GET /x HTTP/1.0\r\n\r\n");
  reply(0);
  client.shut_sending();
  EXPECT_FALSE(client.receive(milliseconds(30)));
  reply(0).send(200, "text/plain", "x");
  EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 200 "));
}

// --- limits ------------------------------------------------------------------------------------

TEST_F(HttpServerTest, RefusesTooLargeABodyBeforeItComes) {
  options_.limits.body_bytes = 1000;
  start_echo();
  TestClient client(server_->port());
  client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n");
  const std::string answer = client.receive_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer, HasSubstr("\"code\":\"request_too_large\""));
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, RefusesABodyWithoutEnd) {
  options_.limits.body_bytes = 100'000;
  options_.limits.linger_time = milliseconds(200);
  start_echo();
  TestClient client(server_->port());
  client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
  int chunks = 0;
  while (chunks < 1'000'000 && client.send(chunk)) ++chunks;
  EXPECT_LT(chunks, 1'000'000);
}

TEST_F(HttpServerTest, LetsTheClientReadWhyABodyWasRefused) {
  options_.limits.body_bytes = 100'000;
  start_echo();
  TestClient client(server_->port());
  client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(client.send(chunk));
  EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 413 "));
  EXPECT_TRUE(client.ended());
  // One that reads when it has sent everything comes as far, too.
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(client.send(chunk));
}

TEST_F(HttpServerTest, BoundsTheBodiesOfAllConnections) {
  options_.limits.body_bytes_of_all = 1000;
  start_echo();
  TestClient first(server_->port()), second(server_->port());
  const std::string half =
      "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 800\r\n\r\n" + std::string(600, 'x');
  first.send(half);
  EXPECT_TRUE(soon([&] { return server_->snapshot().bytes_in == half.size(); }));
  second.send(half);
  EXPECT_THAT(second.receive_all(), StartsWith("HTTP/1.1 503 "));
  first.send(std::string(200, 'y'));
  EXPECT_THAT(first.receive_answer(), StartsWith("HTTP/1.1 200 "));
  TestClient third(server_->port());
  third.send(half + std::string(200, 'z'));
  EXPECT_THAT(third.receive_answer(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, RefusesTooLargeHeaders) {
  options_.limits.header_bytes = 1000;
  start_echo();
  TestClient client(server_->port());
  client.send("GET /x HTTP/1.1\r\nHost: localhost\r\nCookie: " + std::string(2000, 'x'));
  const std::string answer = client.receive_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(answer, HasSubstr("{\"error\":{"));
}

TEST_F(HttpServerTest, AnswersMalformedRequestsInJson) {
  start_echo();
  for (const char* request : {"nonsense\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
                              "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01 TLS\r\n"}) {
    TestClient client(server_->port());
    client.send(request);
    const std::string answer = client.receive_all();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Type: application/json\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\n\r\n{\"error\":{\"message\":"));
    EXPECT_TRUE(client.ended());
  }
}

TEST_F(HttpServerTest, GivesUpOnHeadersThatDoNotEnd) {
  options_.limits.header_time = milliseconds(60);
  start_echo();
  TestClient client(server_->port());
  client.send("GET /x HTTP/1.1\r\n");
  for (int i = 0; i < 100 && client.send("A: b\r\n") && !client.receive(milliseconds(10)); ++i) {
  }
  EXPECT_TRUE(client.receive_until("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, GivesUpOnConnectionsThatSayNothing) {
  options_.limits.header_time = milliseconds(30);
  start_echo();
  TestClient client(server_->port());
  EXPECT_EQ(client.receive_all(), "");
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, GivesUpOnABodyThatCrawls) {
  options_.limits.body_time = milliseconds(60);
  options_.limits.body_step = 100;
  start_echo();
  TestClient client(server_->port());
  client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
  for (int i = 0; i < 100 && client.send("x") && !client.receive(milliseconds(10)); ++i) {
  }
  EXPECT_TRUE(client.receive_until("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, WaitsForABodyThatWalks) {
  options_.limits.body_time = milliseconds(400);
  options_.limits.body_step = 10;
  start_echo();
  TestClient client(server_->port());
  client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n");
  for (int i = 0; i < 20; ++i) {
    client.send("0123456789");
    std::this_thread::sleep_for(milliseconds(25));
  }
  EXPECT_THAT(client.receive_answer(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, ClosesIdleConnections) {
  options_.limits.idle_time = milliseconds(30);
  start_echo();
  TestClient client(server_->port());
  client.send(kGet);
  EXPECT_THAT(client.receive_answer(), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(client.receive_all(), "");
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, HasNoTimeLimitForTheHandler) {
  options_.limits.header_time = options_.limits.body_time = options_.limits.idle_time =
      options_.limits.write_time = milliseconds(100);
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  Reply waiting = reply(0);
  waiting.on_gone([&] { ++calls_; });
  std::this_thread::sleep_for(milliseconds(250));
  EXPECT_EQ(calls_, 0);
  waiting.send(200, "text/plain", "at last");
  EXPECT_THAT(client.receive_answer(), EndsWith("at last"));
}

TEST_F(HttpServerTest, GivesUpOnAStreamThatIsNotRead) {
  options_.limits.write_time = milliseconds(50);
  start_keeping();
  TestClient client(server_->port(), 4096);
  client.send(kGet);
  Reply endless = reply(0);
  endless.on_gone([&] { ++calls_; });
  std::atomic<size_t> asked = 0;
  endless.stream(200, "text/event-stream", [&asked] {
    ++asked;
    return std::string(10'000, 'x');
  });
  EXPECT_TRUE(soon([&] { return calls_ == 1; }));
  EXPECT_TRUE(soon([&] { return server_->snapshot().connections_now == 0; }));
  EXPECT_LT(asked, 10'000u);
  client.receive_all();
  EXPECT_TRUE(client.was_reset());
}

// A pause is no end, and nothing piles up meanwhile.
TEST_F(HttpServerTest, WaitsForAReaderThatPauses) {
  start_keeping();
  TestClient client(server_->port(), 4096);
  client.send(kGet);
  constexpr size_t kPieces = 3'000;
  std::atomic<size_t> asked = 0;
  reply(0).stream(200, "text/plain", [&asked]() -> std::optional<std::string> {
    if (asked == kPieces) return std::nullopt;
    ++asked;
    return std::string(10'000, 'x');
  });
  size_t before = 0;
  EXPECT_TRUE(soon([&] { return asked > 0 && std::exchange(before, asked) == asked; }));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LT(asked, kPieces);
  EXPECT_TRUE(client.receive_bytes(kPieces * 10'000));
  EXPECT_TRUE(soon([&] { return asked == kPieces; }));
  EXPECT_TRUE(client.receive_until("\r\n0\r\n\r\n"));
}

TEST_F(HttpServerTest, GivesUpOnAnAnswerThatIsNotRead) {
  options_.limits.write_time = milliseconds(50);
  start_keeping();
  TestClient client(server_->port(), 4096);
  client.send(kGet);
  Reply large = reply(0);
  large.send(200, "text/plain", std::string(20'000'000, 'x'));
  EXPECT_TRUE(soon([&] { return server_->snapshot().connections_now == 0; }));
}

TEST_F(HttpServerTest, TellsWhomItHasNoRoomFor) {
  options_.limits.connections = 2;
  start_echo();
  TestClient first(server_->port()), second(server_->port());
  EXPECT_TRUE(soon([&] { return server_->snapshot().connections_now == 2; }));
  TestClient third(server_->port());
  third.send(kGet);
  EXPECT_THAT(third.receive_all(), StartsWith("HTTP/1.1 503 "));
  third.close();
  EXPECT_EQ(server_->snapshot().refused, 1u);
  first.close();
  EXPECT_TRUE(soon([&] { return server_->snapshot().connections_now == 1; }));
  TestClient fourth(server_->port());
  fourth.send(kGet);
  EXPECT_THAT(fourth.receive_answer(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, GoesOnAfterAllDescriptorsWereTaken) {
  options_.limits.accept_pause = milliseconds(10);
  start_echo();
  TestClient before(server_->port());
  before.send(kGet);
  before.receive_answer();
  // The client has its socket; the server gets none.
  const int next = ::dup(0);
  ::close(next);
  rlimit old = {};
  ::getrlimit(RLIMIT_NOFILE, &old);
  rlimit none = old;
  none.rlim_cur = static_cast<rlim_t>(next) + 1;
  ::setrlimit(RLIMIT_NOFILE, &none);
  TestClient waiting(server_->port());
  waiting.send(kGet);
  before.send(kGet);
  EXPECT_THAT(before.receive_answer(), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(server_->snapshot().connections, 1u);
  ::setrlimit(RLIMIT_NOFILE, &old);
  EXPECT_THAT(waiting.receive_answer(), StartsWith("HTTP/1.1 200 "));
}

// --- access ------------------------------------------------------------------------------------

TEST_F(HttpServerTest, RefusesStrangersBeforeTheirBody) {
  options_.api_key = "secret";
  start_echo();
  TestClient client(server_->port());
  client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
  const std::string answer = client.receive_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(answer, HasSubstr("WWW-Authenticate: Bearer"));
  EXPECT_EQ(server_->snapshot().requests, 0u);
}

TEST_F(HttpServerTest, RefusesOtherHostsAndOrigins) {
  start_echo();
  TestClient host(server_->port());
  host.send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_THAT(host.receive_all(), StartsWith("HTTP/1.1 403 "));
  TestClient target(server_->port());
  target.send("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(target.receive_all(), StartsWith("HTTP/1.1 403 "));
  TestClient origin(server_->port());
  origin.send(post("x", "Origin: http://evil.example\r\n"));
  const std::string answer = origin.receive_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(answer, Not(HasSubstr("Access-Control")));
  EXPECT_EQ(server_->snapshot().requests, 0u);
}

TEST_F(HttpServerTest, LetsAllowedPagesInAndReadErrors) {
  options_.allowed_origins = {"https://chat.example"};
  options_.api_key = "secret";
  start_echo();
  TestClient client(server_->port());
  client.send(
      "OPTIONS /x HTTP/1.1\r\nHost: localhost\r\nOrigin: https://chat.example\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  EXPECT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(client.received(), Not(HasSubstr("Content-Length")));
  TestClient page(server_->port());
  page.send(post("x", "Origin: https://chat.example\r\nAuthorization: Bearer secret\r\n"));
  EXPECT_THAT(page.receive_answer(),
              HasSubstr("Access-Control-Allow-Origin: https://chat.example"));
  page.send(post("x", "Origin: https://chat.example\r\n"));
  const std::string refused = page.receive_all();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(refused, HasSubstr("Access-Control-Allow-Origin: https://chat.example"));
}

// --- start and end -----------------------------------------------------------------------------

std::string start_error(const HttpOptions& options, bool insecure = false) {
  const auto server = HttpServer::start(options, insecure, [](const HttpRequest&, const Reply&) {});
  if (server) return "";
  EXPECT_EQ(server.error().code, ErrorCode::Usage);
  return server.error().what;
}

TEST(HttpServerStart, NamesTheFlagThatIsWrong) {
  HttpOptions options;
  options.port = 0;
  for (const char* host : {"", "example.com", "256.1.1.1", "::g", "[", "127.0.0.1:80"}) {
    options.host = host;
    EXPECT_THAT(start_error(options), StartsWith("--host ")) << host;
  }
  options.host = "192.0.2.1";  // of nobody
  EXPECT_THAT(start_error(options, true), StartsWith("--host 192.0.2.1: this machine has no such"));
  options.host = "127.0.0.1";
  options.api_key = "";
  EXPECT_THAT(start_error(options), StartsWith("--api-key-file"));
}

TEST_F(HttpServerTest, SaysThatThePortIsTaken) {
  start_echo();
  options_.port = server_->port();
  EXPECT_THAT(start_error(options_), HasSubstr("give another port"));
  server_.reset();
  EXPECT_EQ(start_error(options_), "");
}

TEST(HttpServerStart, WantsAKeyBeyondLoopback) {
  HttpOptions options;
  options.port = 0;
  for (const char* host : {"0.0.0.0", "::", "[::]"}) {
    options.host = host;
    EXPECT_THAT(start_error(options), HasSubstr("--insecure")) << host;
  }
  options.host = "0.0.0.0";
  EXPECT_EQ(start_error(options, true), "");
  options.api_key = "secret";
  EXPECT_EQ(start_error(options), "");
}

TEST(HttpServerStart, ListensAtAddressesOfBothFamilies) {
  HttpOptions options;
  options.port = 0;
  for (const char* host : {"localhost", "127.0.0.1", "127.0.0.5", "::1", "[::1]"}) {
    options.host = host;
    EXPECT_EQ(start_error(options), "") << host;
  }
}

TEST_F(HttpServerTest, DrainsWhenNothingIsAsked) {
  start_echo();
  TestClient idle(server_->port());
  idle.send(kGet);
  idle.receive_answer();
  EXPECT_TRUE(server_->drain(milliseconds(10'000)));
  EXPECT_EQ(idle.receive_all(), "");
  EXPECT_FALSE(TestClient(server_->port()).connected());
  EXPECT_TRUE(server_->drain(milliseconds(0)));
}

TEST_F(HttpServerTest, DrainsAfterTheLastAnswer) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  PushedStream last(reply(0));
  std::thread ends([&] {
    EXPECT_TRUE(soon([&] { return !TestClient(server_->port()).connected(); }));
    last.write("data: last\n\n");
    last.end();
  });
  EXPECT_TRUE(server_->drain(milliseconds(10'000)));
  ends.join();
  EXPECT_THAT(client.receive_all(), EndsWith("data: last\n\n\r\n0\r\n\r\n"));
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, DrainsNoLongerThanAllowed) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  reply(0).on_gone([&] { ++calls_; });
  EXPECT_FALSE(server_->drain(milliseconds(20)));
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(client.receive_all(), "");
}

TEST_F(HttpServerTest, ClosesWithAnswersOpen) {
  start_keeping();
  TestClient waiting(server_->port()), streaming(server_->port());
  waiting.send(kGet);
  reply(0);
  streaming.send(kGet);
  PushedStream stream(reply(1));
  reply(0).on_gone([&] { ++calls_; });
  reply(1).on_gone([&] { ++calls_; });
  server_.reset();
  EXPECT_EQ(calls_, 2);
  stream.write("nobody");
  reply(0).send(200, "text/plain", "nobody");
  EXPECT_EQ(waiting.receive_all(), "");
  EXPECT_THAT(streaming.receive_all(), EndsWith("\r\n\r\n"));
}

// --- many at once ------------------------------------------------------------------------------

// Streams from several threads to clients of which some go at any time.
TEST_F(HttpServerTest, ServesManyStreamsFromManyThreads) {
  start_keeping();
  constexpr size_t count = 24;
  std::vector<std::unique_ptr<TestClient>> clients;
  for (size_t i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<TestClient>(server_->port()));
    clients.back()->send(kGet);
  }
  std::atomic<size_t> gone = 0;
  std::vector<std::thread> writers;
  for (size_t i = 0; i < count; ++i)
    writers.emplace_back([&, i] {
      reply(i).on_gone([&] { ++gone; });
      PushedStream stream(reply(i));
      for (int piece = 0; piece < 50; ++piece)
        stream.write("data: " + std::to_string(piece) + "\n\n");
      stream.end();
    });
  size_t whole = 0;
  for (size_t i = 0; i < count; ++i)
    if (i % 3 == 0)
      clients[i]->reset();
    else
      whole += clients[i]->receive_until("data: 49\n\n\r\n0\r\n\r\n");
  for (std::thread& writer : writers) writer.join();
  server_.reset();  // calls back while `gone` is there
  EXPECT_EQ(whole, count - count / 3);
  EXPECT_LE(gone, count / 3);
}

// Random damage to valid requests: each gets an answer or an end, and the server stays.
TEST_F(HttpServerTest, SurvivesMutatedRequests) {
  options_.limits.header_bytes = 1024;
  options_.limits.body_bytes = 4096;
  start_echo();
  const std::string seeds[] = {
      std::string(kGet), post("hello") + std::string(kGet),
      post("hello", "Expect: 100-continue\r\nOrigin: http://localhost\r\n"),
      "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\n\r\n"};
  Random random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = seeds[random.below(std::size(seeds))];
    for (uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      const size_t at = random.below(bytes.size());
      if (random.below(2) == 0)
        bytes[at] = static_cast<char>(random.below(256));
      else
        bytes.erase(at, 1 + random.below(4));
      if (bytes.empty()) bytes = "x";
    }
    TestClient client(server_->port());
    ASSERT_TRUE(client.connected());
    client.send(bytes);
    client.shut_sending();
    client.receive_all();
    ASSERT_TRUE(client.in_time()) << bytes;
  }
  TestClient client(server_->port());
  client.send(post("alive"));
  EXPECT_THAT(client.receive_answer(), EndsWith("alive"));
}

}  // namespace
}  // namespace deltafin::serve
