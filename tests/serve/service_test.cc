// The service on an engine that a test can hold in the middle of a layer.
#include "serve/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "serve/ending.h"
#include "serve/http/test_client.h"
#include "serve/ticker.h"
#include "support/engine_fixture.h"
#include "support/golden.h"

namespace deltafin::serve {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const json kLong = {{"prompt", "And the LORD said unto Moses,"}, {"max_tokens", 500}};

json with(json body, const json& more) {
  body.update(more);
  return body;
}

std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

// Real time that a test can make go on faster.
class LeapingClock final : public Clock {
 public:
  std::chrono::nanoseconds now() const override {
    return std::chrono::steady_clock::now().time_since_epoch() + ahead_.load();
  }
  void leap(std::chrono::nanoseconds by) { ahead_ = ahead_.load() + by; }

 private:
  std::atomic<std::chrono::nanoseconds> ahead_{};
};

// Calls something once in the middle of a pass over several rows, or over one: in a layer whose
// router has chosen and whose experts are still to be computed.
class InALayer final : public model::Observer {
 public:
  enum class Of : uint8_t { Prefill, Decode };

  InALayer(engine::Engine& engine, Of of, std::function<void()> action)
      : engine_(engine), of_(of), action_(std::move(action)) {
    engine_.set_observer(this);
  }
  ~InALayer() override { engine_.set_observer(nullptr); }
  void on_mixer_output(size_t, model::Rows rows) override {
    now_ = rows.count == 1 ? Of::Decode : Of::Prefill;
  }
  void on_routes(size_t, std::span<const numerics::Route>) override {
    if (now_ == of_ && !std::exchange(called_, true)) action_();
  }
  void on_ffn_output(size_t, model::Rows) override { computed_after_ = computed_after_ || called_; }
  bool called() const { return called_; }
  // Whether that layer, or a later one, was computed to its end.
  bool computed_after() const { return computed_after_; }

 private:
  engine::Engine& engine_;
  Of of_, now_ = Of::Prefill;
  std::function<void()> action_;
  bool called_ = false, computed_after_ = false;
};

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    std::filesystem::create_directory(folder_);
    tokenizer_ = test::value_of(text::open_tokenizer(storage_, kModel));
    ServiceOptions options;
    options.model.id = "demo";
    options.queue = 0;
    options.draw_seed = [] { return 1; };
    options.jobs.directory = folder_;
    service_ = std::make_unique<Service>(std::move(options), *tokenizer_,
                                         fixture_.engine().kernels(), loop_, clock_);
    server_ = test::value_of(
        HttpServer::start({.port = 0}, false, [this](HttpRequest request, Reply reply) {
          service_->handle(std::move(request), std::move(reply));
        }));
  }
  ~ServiceTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Serves `client`, which has a thread of its own, until it returns.
  void serve(const std::function<void()>& client) {
    std::thread thread([&] {
      while (loop_.status().state == ServerState::Loading) std::this_thread::yield();
      client();
      cancel_.cancel();
    });
    {
      Ending ending(loop_, clock_, std::chrono::seconds(0), cancel_, [](uint64_t) {});
      const std::unique_ptr<Ticker> ticker =
          test::value_of(Ticker::start(std::chrono::milliseconds(1), [&] {
            if (is_looked_after_) service_->tick();
            ending.tick();
            ++ticks_;
          }));
      loop_.run(fixture_.engine(), {.context = 1024});
    }
    service_->tick();
    thread.join();
  }

  void expect_timeout_in_a_layer(InALayer::Of of);
  // So long as a broken server may hold up the tests.
  static void wait_for(const std::atomic<bool>& what) {
    for (int i = 0; i < 1000 && !what; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  void tick_twice() {
    const uint64_t until = ticks_ + 2;
    while (ticks_ < until) std::this_thread::yield();
  }

  std::unique_ptr<TestClient> ask(const json& body, const std::string& headers = "") {
    auto client = std::make_unique<TestClient>(server_->port());
    const std::string text = body.dump();
    client->send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
                 headers + "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text);
    return client;
  }
  std::string get(const std::string& path) {
    TestClient client(server_->port());
    client.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return client.receive_all();
  }

  const std::string kModel = test::source_path("models/demo");
  const std::string folder_ =
      std::filesystem::temp_directory_path() / ("deltafin_service_" + std::to_string(::getpid()));
  const io::PosixStorage storage_;
  LeapingClock clock_;
  CancelToken cancel_;
  std::atomic<uint64_t> ticks_ = 0;
  bool is_looked_after_ = true;
  test::EngineFixture fixture_{kModel};
  std::unique_ptr<text::Tokenizer> tokenizer_;
  EngineLoop loop_{clock_};
  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> server_;
};

void ServiceTest::expect_timeout_in_a_layer(InALayer::Of of) {
  std::atomic<bool> is_answered = false;
  InALayer hook(fixture_.engine(), of, [&] {
    clock_.leap(std::chrono::seconds(61));
    wait_for(is_answered);
  });
  serve([&] {
    EXPECT_THAT(ask(with(kLong, {{"timeout", 60}}))->receive_all(),
                AllOf(HasSubstr(" 408 "), HasSubstr("\"param\":\"timeout\"")));
    is_answered = true;
  });
  EXPECT_TRUE(hook.called());
  EXPECT_FALSE(hook.computed_after());
}

TEST_F(ServiceTest, ATimeoutDoesNotWaitForALayerOfAPrompt) {
  expect_timeout_in_a_layer(InALayer::Of::Prefill);
}

TEST_F(ServiceTest, ATimeoutDoesNotWaitForALayerOfAnAnswer) {
  expect_timeout_in_a_layer(InALayer::Of::Decode);
}

TEST_F(ServiceTest, AnEndWithoutPatienceStopsInTheMiddleOfALayer) {
  InALayer hook(fixture_.engine(), InALayer::Of::Decode, [&] {
    cancel_.cancel();
    tick_twice();
  });
  serve([&] {
    EXPECT_THAT(ask(with(kLong, {{"stream", true}}))->receive_all(),
                AllOf(HasSubstr("\"cancelled\""), Not(HasSubstr("[DONE]"))));
  });
  EXPECT_TRUE(hook.called());
  EXPECT_FALSE(hook.computed_after());
}

TEST_F(ServiceTest, AStreamShowsThatItLivesInTheMiddleOfALayer) {
  std::atomic<bool> is_heard = false;
  InALayer hook(fixture_.engine(), InALayer::Of::Prefill, [&] {
    clock_.leap(std::chrono::seconds(3));
    wait_for(is_heard);
  });
  serve([&] {
    EXPECT_TRUE(ask(with(kLong, {{"stream", true}}))->receive_until("\n: prefill"));
    is_heard = true;
  });
  EXPECT_TRUE(hook.called());
}

TEST_F(ServiceTest, WhoHasHisAnswerMayAskAgainAtOnce) {
  is_looked_after_ = false;  // the disk, say, is slow
  serve([&] {
    for (int i = 0; i < 2; ++i)
      EXPECT_THAT(ask({{"prompt", "one"}, {"max_tokens", 1}})->receive_all(), HasSubstr(" 200 "));
  });
}

TEST_F(ServiceTest, AnAnswerIsWrittenWhenItsRequestHasAName) {
  const json body = {{"prompt", "one"}, {"max_tokens", 1}};
  std::string unnamed, named;
  serve([&] {
    unnamed = body_of(ask(body)->receive_all());
    named = body_of(ask(body, "X-Request-Id: mine\r\n")->receive_all());
    // Without a name of its own it is found under the one that the server gave it.
    const std::string id = json::parse(unnamed)["id"];
    EXPECT_EQ(body_of(get("/v1/requests/" + id)), unnamed);
  });
  JobStore later({.directory = folder_}, clock_);
  EXPECT_TRUE(later.find("mine"));
  EXPECT_FALSE(later.find(json::parse(unnamed)["id"]));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace deltafin::serve
