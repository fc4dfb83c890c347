// Requests that no library would send, to the built program over a real socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "serve/server.h"

namespace deltafin::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kHost = "Host: localhost\r\n";

class RawHttp : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<Server>(); }
  static void TearDownTestSuite() { server_.reset(); }
  // Whatever a test did, the server serves, and nothing is left of it.
  void TearDown() override {
    EXPECT_TRUE(Server::wait_for([] { return server_->is_idle(); }));
    EXPECT_EQ(server_->complete(completion(1)).status, 200);
  }

  static uint16_t port() { return server_->port(); }
  static std::string post(const std::string& path, const std::string& body) {
    return Server::request("POST", path, body);
  }
  // What a connection gets that sends this and waits.
  static Answer answer_to(const std::string& bytes) {
    TestClient client(port());
    client.send(bytes);
    return to_answer(rest_of(client));
  }
  // The error of a completion, which must be a 400.
  static json error_of(const std::string& body) {
    const Answer answer = server_->ask("POST", "/v1/completions", body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    const json parsed = answer.parsed();
    return parsed.contains("error") ? parsed["error"] : json::object();
  }
  static json param_of(const json& body) { return error_of(body.dump())["param"]; }
  // How much it has computed so far.
  static uint64_t generated() { return server_->status()["tokens"]["generated"]; }
  // Whole ones, this one too.
  static uint64_t requests() {
    const std::string text = server_->get("/metrics").body,
                      name = "\ndeltafin_http_requests_total ";
    return std::stoull(text.substr(text.find(name) + name.size()));
  }

  static std::unique_ptr<Server> server_;
};
std::unique_ptr<Server> RawHttp::server_;

// --- Heads.

TEST_F(RawHttp, MalformedRequestLinesGetAnErrorAndTheEnd) {
  for (const std::string line :
       {"\x16\x03\x01\x02", "GET", "GET /health", "GET  /health HTTP/1.1", "G@T /health HTTP/1.1",
        "GET /health HTTP/1.1 x", "GET /health HTTP/9", "GET /hea lth HTTP/1.1",
        "GET health HTTP/1.1", "GET /%zz HTTP/1.1", "GET /\x01 HTTP/1.1", "GET /health http/1.1"}) {
    const Answer answer = answer_to(line + "\r\n" + kHost + "\r\n");
    EXPECT_THAT(answer.status, AnyOf(400, 505)) << line << "\n" << answer.head;
    EXPECT_TRUE(answer.parsed().contains("error")) << line;
    EXPECT_THAT(answer.head, HasSubstr("Connection: close")) << line;
  }
  EXPECT_EQ(answer_to("GET /health HTTP/2.0\r\n" + kHost + "\r\n").status, 505);
}

TEST_F(RawHttp, MalformedHeadersGetAnErrorAndTheEnd) {
  const std::string start = "POST /v1/tokenize HTTP/1.1\r\n";
  for (const std::string headers :
       {"Host localhost\r\n", "Host: localhost\r\n: x\r\n", "Host: localhost\r\nA b: c\r\n",
        "Host: localhost\r\nA\x01: c\r\n", "Host: localhost\r\nA: c\x01\r\n", "Accept: */*\r\n",
        "Host: localhost\r\nHost: localhost\r\n", "Host: localhost\r\nContent-Length: -1\r\n",
        "Host: localhost\r\nContent-Length: 1x\r\n",
        "Host: localhost\r\nContent-Length: 99999999999999999999\r\n",
        "Host: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
        "Host: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"}) {
    const Answer answer = answer_to(start + headers + "\r\n{");
    EXPECT_EQ(answer.status, 400) << headers << "\n" << answer.head;
    EXPECT_TRUE(answer.parsed().contains("error")) << headers;
  }
}

TEST_F(RawHttp, AFloodOfHeadersIsRefusedWhileItComes) {
  std::string many = "GET /health HTTP/1.1\r\n" + kHost;
  for (size_t i = 0; i <= limits::kHttpHeaders; ++i) many += "X-" + std::to_string(i) + ": 1\r\n";
  EXPECT_EQ(answer_to(many + "\r\n").status, 431);
  const std::string large = "GET /health HTTP/1.1\r\n" + kHost + "X: ";
  EXPECT_EQ(answer_to(large + std::string(limits::kHttpHeaderBytes, 'x') + "\r\n\r\n").status, 431);
  // One that never ends: no more is taken than the limit and what is on its way.
  TestClient endless(port());
  endless.send("GET /health HTTP/1.1\r\n" + kHost);
  const std::string line = "X: " + std::string(1000, 'x') + "\r\n";
  for (int i = 0; i < 100'000 && endless.received().empty(); ++i) {
    if (!endless.send(line)) break;
    endless.receive(milliseconds(0));
  }
  EXPECT_EQ(to_answer(rest_of(endless)).status, 431);
}

// Half a minute's patience of the server's limits: full tests only.
class RawHttpFull : public RawHttp {};

TEST_F(RawHttpFull, WhoDripsIsSentAwayAndHarmsNobody) {
  const json expected = server_->complete(completion(12)).parsed()["choices"];
  struct Dripper {
    std::unique_ptr<TestClient> client;
    std::string rest;
    seconds limit;
  };
  std::vector<Dripper> drippers;
  const std::string body(100'000, ' ');
  const std::string long_headers = "X: " + std::string(10'000, 'x');
  for (int i = 0; i < 40; ++i) {
    const bool is_head = i % 2 == 0;
    Dripper dripper{
        .client = std::make_unique<TestClient>(port()),
        .rest = is_head ? long_headers : body,
        .limit = seconds(is_head ? limits::kHttpHeaderSeconds : limits::kHttpBodySeconds)};
    dripper.client->send(is_head ? "GET /health HTTP/1.1\r\n" + kHost
                                 : "POST /v1/tokenize HTTP/1.1\r\n" + kHost +
                                       "Content-Length: 100000\r\n\r\n");
    drippers.push_back(std::move(dripper));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::steady_clock::now() - start; };
  for (size_t step = 0; !drippers.empty() && elapsed() < seconds(60); ++step) {
    std::this_thread::sleep_for(milliseconds(200));
    std::erase_if(drippers, [&](Dripper& dripper) {
      dripper.client->send(dripper.rest.substr(step, 1));
      if (!dripper.client->receive(milliseconds(0))) return false;
      EXPECT_EQ(to_answer(rest_of(*dripper.client)).status, 408);
      EXPECT_GE(elapsed(), dripper.limit - seconds(1));
      EXPECT_LT(elapsed(), dripper.limit + seconds(10));
      return true;
    });
    if (step % 10 != 0) continue;
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(server_->get("/health").status, 200);
    EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(2));
    EXPECT_EQ(server_->complete(completion(12)).parsed()["choices"], expected);
  }
  EXPECT_TRUE(drippers.empty());
}

TEST_F(RawHttp, HeadIsGetWithoutABody) {
  for (const std::string path : {"/", "/health", "/v1/models", "/metrics", "/status"}) {
    const Answer get = server_->get(path), head = server_->ask("HEAD", path, "");
    EXPECT_EQ(head.status, 200) << path;
    EXPECT_EQ(head.body, "") << path;
    EXPECT_THAT(head.head, HasSubstr("Content-Length: ")) << path;
  }
  EXPECT_EQ(server_->ask("HEAD", "/v1/completions", "").status, 405);
  EXPECT_EQ(server_->ask("HEAD", "/v1/requests/none", "").status, 405);
  EXPECT_EQ(server_->ask("HEAD", "/nowhere", "").status, 404);
}

TEST_F(RawHttp, OtherMethodsAreToldWhichIsRight) {
  for (const std::string method : {"OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "BREW"}) {
    const Answer answer = server_->ask(method, "/v1/completions", "{}");
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_THAT(answer.head, HasSubstr("Allow: POST")) << method;
    EXPECT_THAT(server_->ask(method, "/health", "").head, HasSubstr("Allow: GET, HEAD")) << method;
  }
  // A page of elsewhere asks first, and is told no.
  const Answer preflight = server_->ask("OPTIONS", "/v1/completions", "",
                                        "Origin: https://example.org\r\n"
                                        "Access-Control-Request-Method: POST\r\n");
  EXPECT_EQ(preflight.status, 403);
  EXPECT_THAT(preflight.head, Not(HasSubstr("Access-Control-Allow-Origin")));
}

TEST_F(RawHttp, WhoWaitsForContinueIsToldToGoOn) {
  const std::string body = R"({"text":"Moses said"})";
  const std::string head = "POST /v1/tokenize HTTP/1.1\r\n" + kHost +
                           "Connection: close\r\nExpect: 100-continue\r\nContent-Length: ";
  TestClient client(port());
  client.send(head + std::to_string(body.size()) + "\r\n\r\n");
  ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_EQ(client.received(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(body);
  EXPECT_THAT(rest_of(client), HasSubstr("HTTP/1.1 200 "));
  const Answer large = answer_to(head + std::to_string(limits::kHttpBodyBytes + 1) + "\r\n\r\n");
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(answer_to("GET /health HTTP/1.1\r\n" + kHost + "Expect: miracles\r\n\r\n").status, 417);
}

// --- Bodies.

TEST_F(RawHttp, AChunkedBodyWithoutEndIsTooLarge) {
  TestClient client(port());
  client.send("POST /v1/completions HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "100000\r\n" + std::string(1 << 20, ' ') + "\r\n";
  int sent = 0;
  while (sent < 200 && client.received().empty() && client.send(chunk)) {
    ++sent;
    client.receive(milliseconds(0));
  }
  const Answer answer = to_answer(rest_of(client));
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.parsed()["error"]["code"], "request_too_large");
  EXPECT_LT(sent, 60);
}

TEST_F(RawHttp, ATruncatedBodyIsNoRequest) {
  const uint64_t before = requests();
  const std::string body = completion(50).dump();
  const std::string whole = post("/v1/completions", body);
  const std::string chunked = "POST /v1/completions HTTP/1.1\r\n" + kHost +
                              "Transfer-Encoding: chunked\r\n\r\n1000\r\n" + body;
  for (const std::string& bytes : {whole.substr(0, whole.size() - 1), chunked}) {
    for (const bool closes : {true, false}) {
      TestClient client(port());
      client.send(bytes);
      if (closes) {
        client.close();
      } else {
        client.shut_sending();
        EXPECT_EQ(rest_of(client), "");
      }
    }
  }
  EXPECT_EQ(requests(), before + 1);
}

// A second of work for the tokenizer, which is not that of the thread that serves.
TEST_F(RawHttp, ALargeBodyHoldsUpNobody) {
  std::string text;
  while (text.size() < 8'000'000) text += "And the LORD said unto Moses, \xC3\xA4\xC3\xB6 ";
  TestClient large(port());
  large.send(post("/v1/tokenize", R"({"text":")" + text + "\"}"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(server_->get("/health").status, 200);
    EXPECT_EQ(server_->ask("POST", "/v1/tokenize", R"({"text":"a"})").parsed()["count"], 1);
  }
  EXPECT_FALSE(large.receive(milliseconds(0)));
  const Answer answer = to_answer(rest_of(large));
  EXPECT_EQ(answer.status, 200);
  EXPECT_GT(answer.body.size(), text.size() / 4);
}

TEST_F(RawHttp, PipelinedRequestsAreAnsweredInOrder) {
  const auto keeping = [](const std::string& path, const std::string& body) {
    return "POST " + path + " HTTP/1.1\r\n" + kHost +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  const std::string text = server_->complete(completion(6)).text();
  TestClient client(port());
  client.send(keeping("/v1/completions", completion(6).dump()) +
              keeping("/v1/detokenize", "{\"tokens\":[") +
              keeping("/v1/tokenize", R"({"text":"Moses said"})") +
              keeping("/v1/completions", completion(6).dump()) + "GET /health HTTP/1.1\r\n" +
              kHost + "Connection: close\r\n\r\n");
  const Answer first = to_answer(client.receive_answer());
  EXPECT_EQ(first.text(), text);
  EXPECT_EQ(to_answer(client.receive_answer()).status, 400);
  EXPECT_EQ(to_answer(client.receive_answer()).parsed()["count"], 4);
  EXPECT_EQ(to_answer(client.receive_answer()).text(), text);
  EXPECT_EQ(to_answer(client.receive_answer()).parsed()["status"], "ready");
  EXPECT_EQ(rest_of(client), "");
}

TEST_F(RawHttp, CharactersMayBeCutAnywhere) {
  const std::string text = "Zürich, 東京 and 🎉 again";
  const std::string body = json{{"text", text}}.dump();
  const json expected = server_->ask("POST", "/v1/tokenize", body).parsed()["tokens"];
  ASSERT_GT(expected.size(), 5u);
  const size_t first = body.find('\xC3');
  // Between two segments, at every byte of the text; all at the same time.
  std::vector<std::unique_ptr<TestClient>> clients;
  const std::string whole = post("/v1/tokenize", body);
  const size_t head = whole.size() - body.size();
  for (size_t cut = first; cut < body.size(); ++cut) {
    clients.push_back(std::make_unique<TestClient>(port()));
    clients.back()->send(whole.substr(0, head + cut));
  }
  std::this_thread::sleep_for(milliseconds(50));
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i]->send(whole.substr(head + first + i));
    EXPECT_EQ(to_answer(rest_of(*clients[i])).parsed()["tokens"], expected) << "cut " << i;
  }
  // And a chunk for each byte.
  std::string chunked = "POST /v1/tokenize HTTP/1.1\r\n" + kHost +
                        "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char c : body) chunked += "1\r\n" + std::string(1, c) + "\r\n";
  EXPECT_EQ(answer_to(chunked + "0\r\n\r\n").parsed()["tokens"], expected);
}

TEST_F(RawHttp, WhatIsNotUtf8IsRefusedByTheNameOfItsField) {
  json error = error_of("{\"max_tokens\":1,\"prompt\":\"a\xFF\"}");
  EXPECT_EQ(error["param"], "prompt");
  EXPECT_EQ(error["code"], "invalid_json");
  EXPECT_THAT(error["message"], HasSubstr("byte 27 is not UTF-8"));
  // A character that is cut off, an overlong one, a surrogate, one beyond Unicode.
  for (const std::string bytes : {"\xE2\x82", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80"})
    EXPECT_EQ(error_of("{\"prompt\":\"" + bytes + "\"}")["param"], "prompt");
  EXPECT_EQ(error_of(R"({"prompt":"\ud83c"})")["param"], "prompt");
  EXPECT_EQ(error_of("{\"prompt\":[\"a\",\"\xFF\"]}")["param"], "prompt[1]");
  EXPECT_EQ(error_of("{\"prompt\":\"a\",\"metadata\":{\"b\":[[],[\"\xFF\"]]}}")["param"],
            "metadata.b[1][0]");
  EXPECT_EQ(error_of("{\"prompt\":\"a\",\"\xFF\":1}")["param"], json());
}

TEST_F(RawHttp, JsonThatIsNoneOrTooDeepIsRefused) {
  EXPECT_EQ(error_of("")["code"], "invalid_json");
  EXPECT_EQ(error_of("{")["code"], "invalid_json");
  EXPECT_EQ(error_of("[]")["code"], "invalid_json");
  EXPECT_EQ(error_of("{\"prompt\":tru")["param"], "prompt");
  for (const size_t depth : {200uz, 1'000'000uz}) {
    for (const std::string opening : {"[", "{\"a\":"}) {
      std::string body = "{\"prompt\":\"a\",\"metadata\":";
      for (size_t i = 0; i < depth; ++i) body += opening;
      const json error = error_of(body);
      EXPECT_EQ(error["code"], "invalid_json");
      EXPECT_THAT(error["message"], HasSubstr("nested more than 128 levels deep"));
      EXPECT_THAT(error["param"].get<std::string>(), StartsWith("metadata"));
      EXPECT_LT(error.dump().size(), 1000u);
    }
  }
}

// As in Python, by which clients are written.
TEST_F(RawHttp, OfAKeyThatComesTwiceTheLastCounts) {
  const std::string body = R"({"max_tokens":9,"prompt":"x","stop":"","prompt":"And","stop":null,)";
  const Answer answer = server_->ask("POST", "/v1/completions", body + R"("max_tokens":3})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.parsed()["usage"]["completion_tokens"], 3);
  EXPECT_EQ(answer.text(), server_->complete({{"prompt", "And"}, {"max_tokens", 3}}).text());
}

// --- What is asked for.

TEST_F(RawHttp, AStopStringMaySpanTokens) {
  const json whole =
      server_->complete({{"prompt", kPrompt}, {"max_tokens", 20}, {"logprobs", 0}}).parsed();
  const std::string text = whole["choices"][0]["text"];
  const std::vector<std::string> tokens = whole["choices"][0]["logprobs"]["tokens"];
  size_t tried = 0;
  for (size_t i = 4; i + 2 < tokens.size(); i += 3) {
    // The end of a token, all of the next and the beginning of a third.
    const std::string stop =
        tokens[i].substr(tokens[i].size() - 1) + tokens[i + 1] + tokens[i + 2].substr(0, 1);
    if (text.find(stop) == std::string::npos) continue;  // bytes that are no character
    ++tried;
    for (const bool stream : {false, true}) {
      json body = completion(20, stream);
      body["stop"] = {"never", stop};
      const Answer answer = server_->complete(body);
      const std::string shown = stream ? text_of(events_of(answer.body)) : answer.text();
      EXPECT_EQ(shown, text.substr(0, text.find(stop))) << stop;
    }
  }
  EXPECT_GT(tried, 2u);
}

TEST_F(RawHttp, AnEmptyPromptIsRefused) {
  for (const json& prompt :
       {json(""), json::array(), json::array({""}), json::array({json::array()}),
        json::array({"x", ""}), json::array({json::array({1}), json::array()})})
    EXPECT_THAT(param_of({{"prompt", prompt}}).get<std::string>(), StartsWith("prompt")) << prompt;
  EXPECT_EQ(param_of(json::object()), "prompt");
  EXPECT_EQ(param_of({{"prompt", nullptr}}), "prompt");
}

TEST_F(RawHttp, AHugeNumberOfTokensIsRefused) {
  for (const std::string number :
       {"8192", "9007199254740993", "18446744073709551615", "18446744073709551616",
        "99999999999999999999999999999999", "1e18", "1e308", "-1"}) {
    const json error = error_of(R"({"prompt":"x","max_tokens":)" + number + "}");
    EXPECT_EQ(error["param"], "max_tokens") << number << error;
  }
  EXPECT_EQ(error_of(R"({"prompt":"x","max_tokens":1e999})")["param"], "max_tokens");
}

TEST_F(RawHttp, APromptThatDoesNotFitIsRefusedWithTheNumbers) {
  const uint64_t context = server_->get("/v1/models").parsed()["data"][0]["deltafin"]["context"];
  const std::vector<int> ids(context + 5, 7);
  json error = error_of(json{{"prompt", ids}}.dump());
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "prompt");
  EXPECT_THAT(error["message"], HasSubstr(std::to_string(context + 5) + " tokens"));
  EXPECT_THAT(error["message"], HasSubstr("context of " + std::to_string(context)));
  const std::vector<int> half(context / 2, 7);
  error = error_of(json{{"prompt", half}, {"max_tokens", context}}.dump());
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "max_tokens");
  EXPECT_THAT(error["message"], HasSubstr(std::to_string(context / 2) + " tokens"));
  EXPECT_THAT(error["message"], HasSubstr(std::to_string(context - context / 2)));
  EXPECT_THAT(error["message"], HasSubstr(std::to_string(context) + " are asked for"));
}

TEST_F(RawHttp, MoreLogprobsThanAnAnswerMayHoldAreRefused) {
  json body = {{"prompt", std::vector(1024, std::vector<int>(100, 7))},
               {"max_tokens", 0},
               {"echo", true},
               {"logprobs", 20}};
  const json error = error_of(body.dump());
  EXPECT_EQ(error["code"], "too_many_logprobs");
  EXPECT_EQ(error["param"], "logprobs");
  EXPECT_THAT(error["message"], HasSubstr(std::to_string(1024 * 100 * 21) + " log-prob"));
  body["prompt"] = std::vector(10, std::vector<int>(100, 7));
  EXPECT_EQ(server_->ask("POST", "/v1/completions", body.dump()).status, 200);
}

// A prompt that comes back eight times with twenty logprobs a token: some 20 MB, of which none
// waits in the server's output.
TEST_F(RawHttp, WhoReadsAStreamLateGetsAllOfIt) {
  std::vector<int> prompt(1500);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int>(i * 7919 % 2000);
  const json body = {{"prompt", prompt}, {"max_tokens", 50}, {"n", 8},
                     {"echo", true},     {"logprobs", 20},   {"stream", true}};
  TestClient client(port(), 4096);
  client.send(Server::request("POST", "/v1/completions", body.dump(), "X-Request-Id: late\r\n"));
  EXPECT_TRUE(Server::wait_for([] { return !server_->is_idle(); }));
  for (int i = 0; i < 6 && !server_->is_idle(); ++i)
    Server::wait_for([] { return server_->is_idle(); });
  const std::string late = to_answer(rest_of(client)).body;
  EXPECT_GT(late.size(), 4u << 20);
  EXPECT_THAT(late, EndsWith("data: [DONE]\n\n"));
  // And who comes back for it.
  const std::string again = server_->get("/v1/requests/late").body;
  EXPECT_TRUE(events_of(again) == events_of(late));
}

}  // namespace
}  // namespace deltafin::test
