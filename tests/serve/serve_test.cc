// deltafin serve as its clients meet it: the built program, the bundled model, real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <regex>
#include <set>
#include <thread>

#include "serve/server.h"

namespace deltafin::test {
namespace {

using testing::HasSubstr;
using testing::Not;

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
  EXPECT_EQ(param({{"prompt", {1, 999999}}}), "prompt[1]");
  EXPECT_EQ(param({{"prompt", "x"}, {"suffix", "y"}}), "suffix");
  EXPECT_EQ(param({{"prompt", "x"}, {"stop", ""}}), "stop[0]");
  EXPECT_EQ(server.get("/v1/nowhere").status, 404);
  EXPECT_EQ(server.get("/v1/completions").status, 405);
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
