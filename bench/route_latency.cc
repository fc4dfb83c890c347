#include "route_latency.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "served_model.h"

namespace deltafin::bench {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

struct Route {
  const char* method;
  const char* path;
  const char* body;
};
constexpr Route kRoutes[] = {{"GET", "/health", ""},
                             {"GET", "/metrics", ""},
                             {"GET", "/v1/models", ""},
                             {"POST", "/v1/tokenize", R"({"text":"And the LORD said unto Moses"})"},
                             {"GET", "/", ""}};

}  // namespace

Latencies ask_routes(uint16_t port, size_t connections, const std::function<bool()>& ends) {
  std::vector<Latencies> found(kClients);
  std::vector<std::thread> threads;
  for (size_t client = 0; client < kClients; ++client) {
    threads.emplace_back([&, client] {
      std::vector<std::unique_ptr<HttpClient>> mine;
      for (size_t i = client; i < connections; i += kClients)
        mine.push_back(std::make_unique<HttpClient>(port));
      for (size_t turn = client; !ends(); ++turn) {
        const Route& route = kRoutes[turn % std::size(kRoutes)];
        const Clock::time_point start = Clock::now();
        const HttpAnswer answer =
            mine[turn % mine.size()]->ask(route.method, route.path, route.body);
        found[client][answer.status == 200 ? route.path : "failed"].push_back(
            1000 * std::chrono::duration<double>(Clock::now() - start).count());
        std::this_thread::sleep_for(milliseconds(4));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Latencies all;
  for (Latencies& some : found)
    for (auto& [path, times] : some) all[path].insert(all[path].end(), times.begin(), times.end());
  return all;
}

double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, size_t(share * double(sorted.size())))];
}

}  // namespace deltafin::bench
