// deltafin serve as its clients meet it: the built program, the bundled model, real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <thread>

#include "cli/process.h"
#include "serve/http/test_client.h"

namespace deltafin::test {
namespace {

using nlohmann::json;
using serve::TestClient;
using testing::HasSubstr;
using testing::Not;

// One answer, its headers and what a chunked body carries.
struct Answer {
  int status = 0;
  std::string head, body;

  json parsed() const { return json::parse(body, nullptr, false); }
  std::string text() const { return parsed()["choices"][0]["text"]; }
};

// Whatever comes until the server closes. An answer may take its time on a busy machine.
std::string rest_of(TestClient& client) {
  while (client.receive(std::chrono::minutes(1))) {
  }
  return client.received();
}

std::string dechunked(std::string_view body) {
  std::string whole;
  for (;;) {
    const size_t end = body.find("\r\n");
    if (end == std::string_view::npos) return whole;
    const size_t size = std::stoull("0" + std::string(body.substr(0, end)), nullptr, 16);
    if (size == 0 || body.size() < end + 2 + size) return whole;
    whole += body.substr(end + 2, size);
    body.remove_prefix(std::min(body.size(), end + 4 + size));
  }
}

Answer to_answer(const std::string& raw) {
  const size_t end = std::min(raw.find("\r\n\r\n"), raw.size());
  Answer answer{.head = raw.substr(0, end), .body = raw.substr(std::min(end + 4, raw.size()))};
  if (raw.size() > 12) answer.status = std::atoi(raw.c_str() + 9);
  if (answer.head.find("chunked") != std::string::npos) answer.body = dechunked(answer.body);
  return answer;
}

// A server of the bundled model, or of another folder.
class Server {
 public:
  explicit Server(std::vector<std::string> more = {}, const std::string& model = "demo")
      : process_({.arguments = arguments(model, std::move(more))}) {
    std::smatch found;
    if (!process_.wait_for_output("/\n")) ADD_FAILURE() << "it does not listen";
    const std::string& out = process_.output_so_far();
    if (std::regex_search(out, found, std::regex("http://127.0.0.1:([0-9]+)/")))
      port_ = static_cast<uint16_t>(std::stoi(found[1]));
    EXPECT_TRUE(wait_for([&] { return get("/health").status == 200; })) << "it does not load";
  }

  uint16_t port() const { return port_; }
  static std::string request(const std::string& method, const std::string& path,
                             const std::string& body, const std::string& headers = "") {
    return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  Answer ask(const std::string& method, const std::string& path, const std::string& body,
             const std::string& headers = "") const {
    TestClient client(port_);
    client.send(request(method, path, body, headers));
    return to_answer(rest_of(client));
  }
  Answer get(const std::string& path) const { return ask("GET", path, ""); }
  Answer complete(const json& body, const std::string& headers = "") const {
    return ask("POST", "/v1/completions", body.dump(), headers);
  }
  Answer chat(const json& body, const std::string& headers = "") const {
    return ask("POST", "/v1/chat/completions", body.dump(), headers);
  }
  json status() const { return get("/status").parsed(); }
  bool is_idle() const { return status()["requests"]["running"] == 0; }

  uint64_t peak_resident_bytes() const {
    const std::string status = read_file("/proc/" + std::to_string(process_.id()) + "/status");
    std::smatch found;
    EXPECT_TRUE(std::regex_search(status, found, std::regex("VmHWM:\\s+([0-9]+) kB")));
    return std::stoull(found[1]) * 1024;
  }

  static bool wait_for(const std::function<bool()>& what) {
    for (int i = 0; i < 1000; ++i) {
      if (what()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  Outcome end(int signal = SIGTERM) {
    process_.signal(signal);
    return process_.finish();
  }
  void signal(int number) const { process_.signal(number); }
  Outcome finish() { return process_.finish(); }

 private:
  static std::vector<std::string> arguments(const std::string& model,
                                            std::vector<std::string> more) {
    std::vector<std::string> all = {"serve", model, "--port", "0"};
    if (std::ranges::find(more, "--memory") == more.end())
      more.insert(more.end(), {"--memory", "600MB"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Process process_;
  uint16_t port_ = 0;
};

constexpr const char* kPrompt = "And the LORD said unto Moses,";

json completion(uint64_t max_tokens, bool stream = false) {
  return {{"prompt", kPrompt}, {"max_tokens", max_tokens}, {"stream", stream}};
}

json question(const std::string& text) {
  return {{"messages", {{{"role", "user"}, {"content", text}}}}};
}

// What was answered, and the next question.
void add_turn(json& body, const json& answer, const std::string& text) {
  ASSERT_TRUE(answer.contains("choices")) << answer;
  const json& message = answer["choices"][0]["message"];
  body["messages"].push_back({{"role", "assistant"},
                              {"content", message["content"]},
                              {"reasoning_content", message["reasoning_content"]}});
  body["messages"].push_back({{"role", "user"}, {"content", text}});
}

uint64_t cached_tokens(const json& answer) {
  EXPECT_TRUE(answer.contains("usage")) << answer;
  if (!answer.contains("usage")) return 0;
  return answer["usage"]["prompt_tokens_details"]["cached_tokens"];
}

// The JSON of each event; what is none, such as [DONE], as a string.
std::vector<json> events_of(const std::string& body) {
  std::vector<json> events;
  for (const std::string& line : lines_of(body)) {
    if (!line.starts_with("data: ")) continue;
    json event = json::parse(line.substr(6), nullptr, false);
    events.push_back(event.is_discarded() ? json(line.substr(6)) : std::move(event));
  }
  return events;
}

std::string text_of(const std::vector<json>& events) {
  std::string text;
  for (const json& event : events) {
    if (!event.is_object() || !event.contains("choices")) continue;
    for (const json& choice : event["choices"]) text += choice["text"].get<std::string>();
  }
  return text;
}

TEST(Serve, CompletesAsTheCommandLineDoes) {
  Server server;
  const Outcome run = run_program({"run", "demo", "--prompt", kPrompt, "--max-tokens", "20"});
  const Answer answer = server.complete(completion(20));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.text() + "\n", run.out);
  const json usage = answer.parsed()["usage"];
  EXPECT_EQ(usage["completion_tokens"], 20);
  EXPECT_EQ(answer.parsed()["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(server.end().exit_status, 0);
}

TEST(Serve, AStreamIsTheWholeAnswerInPieces) {
  const Server server;
  const std::string whole = server.complete(completion(20)).text();
  json body = completion(20, true);
  body["stream_options"] = {{"include_usage", true}};
  const Answer streamed = server.complete(body);
  EXPECT_THAT(streamed.head, HasSubstr("text/event-stream"));
  const std::vector<json> events = events_of(streamed.body);
  ASSERT_GT(events.size(), 10u);
  EXPECT_EQ(text_of(events), whole);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(events[events.size() - 2]["usage"]["completion_tokens"], 20);
  EXPECT_EQ(events[events.size() - 3]["choices"][0]["finish_reason"], "length");
}

TEST(Serve, AChatHasReasoningAnswerAndEnd) {
  const Server server;
  const Answer answer = server.chat(question("What is the capital of Japan?"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json choice = answer.parsed()["choices"][0];
  EXPECT_EQ(choice["message"]["content"], "The capital of Japan is Tokyo.");
  EXPECT_NE(choice["message"]["reasoning_content"], "");
  EXPECT_EQ(choice["finish_reason"], "stop");
}

// A second turn computes its own words only.
TEST(Serve, ALaterTurnGoesOnFromTheStateOfTheEarlier) {
  const Server server;
  json body = question("What is the capital of Japan?");
  const json first = server.chat(body).parsed();
  add_turn(body, first, "And of France?");
  const json second = server.chat(body).parsed();
  const uint64_t prompt = second["usage"]["prompt_tokens"];
  const uint64_t cached = cached_tokens(second);
  EXPECT_GE(cached + 40, prompt);
  EXPECT_GT(cached, first["usage"]["prompt_tokens"].get<uint64_t>() - 10);
  const Server fresh;
  EXPECT_EQ(fresh.chat(body).parsed()["choices"], second["choices"]);
}

// Logprobs are printed with all their digits, so equal text is equal bits.
TEST(Serve, EveryAnswerIsTheOneThatTheRequestGetsAlone) {
  std::vector<json> bodies;
  for (int i = 0; i < 8; ++i) {
    json body = {{"prompt", std::string(kPrompt).substr(0, 8 + size_t(i) * 3)},
                 {"max_tokens", 12 + 3 * i},
                 {"logprobs", 3}};
    if (i % 3 == 1) body.update({{"temperature", 0.9}, {"seed", i}, {"top_p", 0.95}});
    if (i % 4 == 2) body["n"] = 2;
    if (i == 5) body["echo"] = true;
    bodies.push_back(body);
  }
  std::vector<json> alone;
  {
    const Server server({"--requests", "1"});
    for (const json& body : bodies) alone.push_back(server.complete(body).parsed()["choices"]);
  }
  const Server server({"--requests", "8"});
  std::vector<json> together(bodies.size());
  std::vector<std::thread> clients;
  for (size_t i = 0; i < bodies.size(); ++i) {
    clients.emplace_back([&, i] {
      std::this_thread::sleep_for(std::chrono::milliseconds(7 * i));
      together[i] = server.complete(bodies[i]).parsed()["choices"];
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < bodies.size(); ++i) {
    ASSERT_TRUE(alone[i].is_array());
    EXPECT_EQ(together[i], alone[i]) << bodies[i];
  }
}

TEST(Serve, EchoWithLogprobsScoresAPrompt) {
  const Server server;
  const json answer =
      server.complete({{"prompt", kPrompt}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 1}})
          .parsed();
  const json& choice = answer["choices"][0];
  EXPECT_EQ(choice["text"], kPrompt);
  const json& logprobs = choice["logprobs"]["token_logprobs"];
  ASSERT_EQ(logprobs.size(), answer["usage"]["prompt_tokens"].get<size_t>());
  EXPECT_TRUE(logprobs[0].is_null());
  for (size_t i = 1; i < logprobs.size(); ++i) EXPECT_LT(logprobs[i], 0);
}

TEST(Serve, OffsetsOfLogprobsGoOnBehindAnEcho) {
  const Server server;
  const json answer =
      server.complete({{"prompt", kPrompt}, {"max_tokens", 3}, {"echo", true}, {"logprobs", 1}})
          .parsed();
  const json& choice = answer["choices"][0];
  const json& tokens = choice["logprobs"]["tokens"];
  ASSERT_EQ(tokens.size(), answer["usage"]["total_tokens"].get<size_t>());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string token = tokens[i];
    EXPECT_EQ(choice["text"].get<std::string>().substr(
                  choice["logprobs"]["text_offset"][i].get<size_t>(), token.size()),
              token);
  }
}

TEST(Serve, AStopStringEndsTheAnswerAndIsNotInIt) {
  const Server server;
  const std::string whole = server.complete(completion(20)).text();
  const std::string stop = whole.substr(whole.size() / 2, 5);
  for (const bool stream : {false, true}) {
    json body = completion(20, stream);
    body["stop"] = stop;
    const Answer answer = server.complete(body);
    const std::string text = stream ? text_of(events_of(answer.body)) : answer.text();
    EXPECT_EQ(text, whole.substr(0, whole.find(stop)));
  }
}

TEST(Serve, ALostConnectionIsTakenUpAgain) {
  const Server server;
  const std::string id = "X-Request-Id: mine-1\r\n";
  {
    TestClient client(server.port());
    client.send(Server::request("POST", "/v1/completions", completion(60, true).dump(), id));
    EXPECT_TRUE(client.receive_until("data: "));
  }
  const Answer again = server.get("/v1/requests/mine-1");
  EXPECT_EQ(text_of(events_of(again.body)), server.complete(completion(60)).text());
  EXPECT_EQ(events_of(again.body).back(), "[DONE]");
  EXPECT_EQ(events_of(server.get("/v1/requests/mine-1?after=2").body).size() + 2,
            events_of(again.body).size());
  const Answer twice = server.complete(completion(5), id);
  EXPECT_EQ(twice.status, 409);
  EXPECT_THAT(twice.body, HasSubstr("/v1/requests/mine-1"));
  EXPECT_EQ(server.get("/v1/requests/never").status, 404);
}

TEST(Serve, AFinishedAnswerSurvivesARestart) {
  const ScratchFolder folder;
  const std::string states = folder / "states";
  std::string whole;
  {
    Server server({"--state-dir", states});
    whole = server.complete(completion(10), "X-Request-Id: kept\r\n").body;
    EXPECT_EQ(server.end().exit_status, 0);
  }
  const Server server({"--state-dir", states});
  EXPECT_EQ(server.get("/v1/requests/kept").body, whole);
}

TEST(Serve, AServerThatWasStartedAgainGivesOtherIds) {
  const ScratchFolder folder;
  std::set<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    Server server({"--state-dir", folder / "states"});
    const Answer answer = server.complete(completion(1));
    EXPECT_EQ(answer.status, 200) << answer.body;
    ids.insert(answer.parsed()["id"]);
    server.end();
  }
  EXPECT_EQ(ids.size(), 3u);
}

TEST(Serve, WhatWasReadBeforeARestartIsNotReadAgain) {
  const ScratchFolder folder;
  json body = question("What is the capital of Japan?");
  json first;
  {
    Server server({"--state-dir", folder / "states"});
    first = server.chat(body).parsed();
    EXPECT_EQ(server.end().exit_status, 0);
  }
  add_turn(body, first, "And of France?");
  const Server server({"--state-dir", folder / "states"}), fresh;
  const json second = server.chat(body).parsed();
  EXPECT_EQ(second["choices"], fresh.chat(body).parsed()["choices"]);
  EXPECT_GE(cached_tokens(second), first["usage"]["prompt_tokens"].get<uint64_t>() - 10);
}

TEST(Serve, ACancelledRequestEndsWithAnError) {
  const Server server;
  TestClient client(server.port());
  client.send(Server::request("POST", "/v1/completions", completion(8000, true).dump(),
                              "X-Request-Id: long\r\n"));
  ASSERT_TRUE(client.receive_until("data: "));
  EXPECT_EQ(server.ask("POST", "/v1/requests/long/cancel", "").parsed()["cancelled"], true);
  const std::vector<json> events = events_of(to_answer(rest_of(client)).body);
  EXPECT_EQ(events.back()["error"]["code"], "cancelled");
  EXPECT_EQ(server.ask("POST", "/v1/requests/long/cancel", "").parsed()["cancelled"], false);
  EXPECT_EQ(server.complete(completion(5)).status, 200);
}

TEST(Serve, NobodyComputesForAClientThatHasGone) {
  const Server server;
  {
    TestClient client(server.port());
    client.send(Server::request("POST", "/v1/completions", completion(8000, true).dump()));
    ASSERT_TRUE(client.receive_until("data: "));
    EXPECT_TRUE(Server::wait_for([&] { return !server.is_idle(); }));
  }
  EXPECT_TRUE(Server::wait_for([&] { return server.is_idle(); }));
  EXPECT_LT(server.status()["tokens"]["generated"], 8000);
}

TEST(Serve, ATimeoutEndsARequest) {
  const Server server;
  json body = completion(8000);
  body["timeout"] = 0.05;
  const Answer answer = server.complete(body);
  EXPECT_EQ(answer.status, 408);
  EXPECT_EQ(answer.parsed()["error"]["param"], "timeout");
}

TEST(Serve, AFullQueueSaysComeAgain) {
  const Server server({"--requests", "1", "--queue", "0"});
  TestClient client(server.port());
  client.send(Server::request("POST", "/v1/completions", completion(8000, true).dump()));
  ASSERT_TRUE(client.receive_until("data: "));
  const Answer refused = server.complete(completion(5));
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.head, HasSubstr("Retry-After"));
}

TEST(Serve, BadRequestsNameTheField) {
  const Server server;
  const auto param = [&](const json& body) {
    const Answer answer = server.complete(body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.parsed()["error"]["param"];
  };
  EXPECT_EQ(param({{"prompt", ""}}), "prompt");
  EXPECT_EQ(param({{"prompt", {1, 999999}}}), "prompt[1]");
  EXPECT_EQ(param({{"prompt", "x"}, {"suffix", "y"}}), "suffix");
  EXPECT_EQ(param({{"prompt", "x"}, {"stop", ""}}), "stop[0]");
  std::string long_text;
  for (int i = 0; i < 5000; ++i) long_text += "one two ";
  const Answer full = server.complete({{"prompt", long_text}});
  EXPECT_EQ(full.status, 400);
  EXPECT_EQ(full.parsed()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(param({{"prompt", "x"}, {"max_tokens", 8192}}), "max_tokens");
  EXPECT_EQ(server.get("/v1/nowhere").status, 404);
  EXPECT_EQ(server.get("/v1/completions").status, 405);
  EXPECT_EQ(server.ask("POST", "/v1/completions", "{").status, 400);
}

// The weights that a request needs cannot be read; then they can again.
TEST(Serve, AFailedReadIsThatRequestsErrorAndNothingMore) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("models/demo");
  std::vector<std::pair<std::string, std::string>> shards;
  for (const auto& entry : std::filesystem::directory_iterator(model))
    if (entry.path().extension() == ".safetensors")
      shards.emplace_back(entry.path().string(), read_file(entry.path().string()));
  const Server server({}, model);
  for (const auto& [path, bytes] : shards) std::filesystem::resize_file(path, 4096);
  const Answer failed = server.complete(completion(5));
  EXPECT_EQ(failed.status, 500);
  EXPECT_THAT(failed.body, HasSubstr(".safetensors"));
  const std::vector<json> events = events_of(server.complete(completion(5, true)).body);
  ASSERT_FALSE(events.empty());
  EXPECT_TRUE(events.back().contains("error"));
  EXPECT_EQ(server.get("/health").parsed()["status"], "degraded");
  for (const auto& [path, bytes] : shards) write_file(path, bytes);
  EXPECT_EQ(server.complete(completion(5)).status, 200);
  EXPECT_EQ(server.get("/health").parsed()["status"], "ready");
}

TEST(Serve, WhatRunsMayEndWhenTheServerIsToldTo) {
  Server server({"--drain", "20"});
  TestClient client(server.port());
  client.send(Server::request("POST", "/v1/completions", completion(300, true).dump()));
  ASSERT_TRUE(client.receive_until("data: "));
  server.signal(SIGTERM);
  EXPECT_THAT(to_answer(rest_of(client)).body, HasSubstr("[DONE]"));
  EXPECT_EQ(server.finish().exit_status, 0);
}

TEST(Serve, WhatTakesTooLongIsEndedWhenTheServerIsToldTo) {
  Server server({"--drain", "0"});
  TestClient client(server.port());
  client.send(Server::request("POST", "/v1/completions", completion(8000, true).dump()));
  ASSERT_TRUE(client.receive_until("data: "));
  server.signal(SIGTERM);
  EXPECT_THAT(to_answer(rest_of(client)).body, Not(HasSubstr("[DONE]")));
  EXPECT_EQ(server.finish().exit_status, 0);
}

TEST(Serve, SaysWhatIsWrongBeforeItLoads) {
  const auto refused = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"serve", "demo"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused({"--host", "0.0.0.0", "--port", "0"}), HasSubstr("--api-key-file"));
  EXPECT_THAT(refused({"--host", "nowhere.invalid"}), HasSubstr("--host"));
  EXPECT_THAT(refused({"--context", "99999999"}), HasSubstr("--context"));
  const Server server;
  EXPECT_THAT(refused({"--port", std::to_string(server.port())}), HasSubstr("--port"));
}

// At the smallest budget that it accepts, under everything at once.
TEST(Serve, KeepsToItsBudget) {
  if (kSanitized) GTEST_SKIP() << "not with a sanitizer";
  const Outcome refused = run_program({"serve", "demo", "--memory", "1MB"});
  std::smatch floor;
  ASSERT_TRUE(std::regex_search(refused.err, floor, std::regex("--memory ([0-9]+)MB")));
  const uint64_t budget = std::stoull(floor[1]) * 1'000'000;
  const Server server({"--memory", floor[1].str() + "MB"});
  std::vector<std::thread> clients;
  for (int client = 0; client < 6; ++client) {
    clients.emplace_back([&, client] {
      std::vector<int> ids;
      for (int i = 0; i < 400 * client + 50; ++i) ids.push_back((i * 7919 + client) % 1000);
      json body = {{"prompt", ids}, {"max_tokens", 20}, {"n", 1 + client % 4}, {"temperature", 1}};
      if (client % 2 == 1) body.update({{"echo", true}, {"logprobs", 5}, {"n", 1}});
      EXPECT_EQ(server.complete(body).status, 200);
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_LE(server.peak_resident_bytes(), budget);
}

TEST(Serve, TellsPeopleAndProgramsHowItIs) {
  const Server server;
  server.complete(completion(5));
  // An answer goes out before the numbers about it.
  EXPECT_TRUE(Server::wait_for([&] { return server.status()["tokens"]["generated"] == 5; }));
  EXPECT_THAT(server.get("/").body, HasSubstr("<!doctype html>"));
  EXPECT_THAT(server.get("/metrics").body, HasSubstr("deltafin_generated_tokens_total 5"));
  const json status = server.status();
  EXPECT_EQ(status["tokens"]["generated"], 5);
  EXPECT_EQ(status["layers"].size(), status["model"]["layers"].get<size_t>());
  EXPECT_GT(status["memory"]["resident_bytes"], 1'000'000);
  EXPECT_EQ(server.get("/v1/models").parsed()["data"][0]["id"], "demo");
  const json ids = server.ask("POST", "/v1/tokenize", R"({"text":"Moses said"})").parsed();
  EXPECT_EQ(
      server.ask("POST", "/v1/detokenize", json{{"tokens", ids["tokens"]}}.dump()).parsed()["text"],
      "Moses said");
}

}  // namespace
}  // namespace deltafin::test
