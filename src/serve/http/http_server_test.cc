#include "serve/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

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
  std::unique_ptr<HttpServer> server_;  // the first to go
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
  Reply stream = reply(0);
  stream.begin(200, "text/event-stream");
  EXPECT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_THAT(client.received(), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(client.received(), HasSubstr("Cache-Control: no-cache\r\n"));
  EXPECT_THAT(client.received(), HasSubstr("X-Accel-Buffering: no\r\n"));
  EXPECT_THAT(client.received(), HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  for (const std::string piece : {"data: a\n\n", "data: b\n\n"}) {
    EXPECT_TRUE(stream.write(piece));
    EXPECT_TRUE(client.receive_until("9\r\n" + piece + "\r\n"));
  }
  stream.end();
  EXPECT_TRUE(client.receive_until("0\r\n\r\n"));
}

TEST_F(HttpServerTest, NoticesThatTheClientHasGone) {
  start_keeping();
  TestClient client(server_->port());
  client.send(kGet);
  std::atomic<int> calls = 0;
  reply(0).on_gone([&] { ++calls; });
  client.reset();
  EXPECT_TRUE(soon([&] { return calls == 1; }));
  EXPECT_TRUE(reply(0).gone());
  server_.reset();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace deltafin::serve
