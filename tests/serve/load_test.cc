// Many requests, of which many end otherwise than they should.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/philox.h"
#include "serve/server.h"
#include "support/test_seed.h"

namespace deltafin::test {
namespace {

constexpr size_t kRequests = 200, kClients = 8;

// One request of a client; a third of them goes away at some moment. True: it was to be answered,
// and was.
bool send_one(const Server& server, Random& random, bool& stays) {
  stays = random.below(3) != 0;
  std::vector<int> prompt(1 + random.below(60));
  for (int& id : prompt) id = static_cast<int>(random.below(2000));
  json body = {{"prompt", prompt},
               {"max_tokens", 1 + random.below(16)},
               {"stream", random.below(2) == 0},
               {"n", 1 + random.below(3)}};
  if (random.below(4) == 0) body.update({{"logprobs", 5}, {"echo", true}});
  const std::string request = Server::request("POST", "/v1/completions", body.dump());
  TestClient client(server.port());
  if (stays) {
    client.send(request);
    return to_answer(rest_of(client)).status == 200;
  }
  switch (random.below(4)) {
    case 0:  // half a request
      client.send(request.substr(0, 1 + random.below(request.size() - 1)));
      break;
    case 1:  // before the first byte
      client.send(request);
      break;
    case 2:  // in the middle, or at the end
      client.send(request);
      client.receive();
      break;
    default:  // after a while
      client.send(request);
      client.receive(std::chrono::milliseconds(random.below(30)));
  }
  if (random.below(2) == 0) client.reset();
  return false;
}

// Counts, not times: how many are alive at the end, and what memory they leave behind.
TEST(Load, NothingIsLeftOfManyRequestsOfWhichManyAreBrokenOff) {
  const Server server({"--requests", "4", "--queue", "16"});
  server.complete(completion(20));
  const uint64_t seed = test_seed();
  std::atomic<size_t> answered = 0, expected = 0;
  std::vector<std::thread> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      Random random(seed + i);
      for (size_t k = 0; k < kRequests / kClients; ++k) {
        bool stays = false;
        const bool ok = send_one(server, random, stays);
        answered += ok ? 1 : 0;
        expected += stays ? 1 : 0;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, expected);
  EXPECT_GT(expected, kRequests / 3);
  EXPECT_TRUE(Server::wait_for([&] {
    const json requests = server.status()["requests"];
    return requests["running"] == 0 && requests["queued"] == 0;
  }));
  // Ours is the only connection.
  EXPECT_TRUE(Server::wait_for([&] {
    return server.get("/metrics").body.find("deltafin_connections 1\n") != std::string::npos;
  }));
  EXPECT_EQ(server.status()["requests"]["failed"], 0);
  if (!kSanitized) EXPECT_LE(server.peak_resident_bytes(), 600'000'000u);
  // Whoever comes now gets what he would have got before.
  const Server fresh;
  EXPECT_EQ(server.complete(completion(20)).text(), fresh.complete(completion(20)).text());
}

}  // namespace
}  // namespace deltafin::test
