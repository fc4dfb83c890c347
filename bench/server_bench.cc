// The server under load: the built program, asked over HTTP by clients of which many go away.
//
//   [DELTAFIN_BENCH_MODEL=DIRECTORY] [DELTAFIN_BENCH_MEMORY=1800MB] ./x bench server
//       [--benchmark_filter=routes|bodies|memory|decode] [--benchmark_repetitions=ROUNDS]
//
//   routes  how long the routes that generate nothing take, over 200 connections that stay open,
//           while four answers stream
//   bodies  the same while prompts of 16 MB are tokenized
//   memory  what the server holds after 200 to 2000 requests, of which a third breaks off
//   decode  tokens a second of 1, 2, 4 and 8 answers at a time, against what the bytes that their
//           passes go through (distinct experts, and the trunk once a pass) take at the machine's
//           best rates of memory and, as far as they were read, of the disk. `of_alone` compares
//           bytes a second with those of one answer.
//
// The bundled model without DELTAFIN_BENCH_MODEL. Clients share the machine with the server, so
// times are upper bounds. Prompts are random ids, seeded.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "base/machine.h"
#include "base/philox.h"
#include "machine.h"
#include "memory/probe.h"
#include "record.h"
#include "roofs.h"
#include "served_model.h"

namespace deltafin::bench {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uint64_t kTokens = 500;  // every model has so many
constexpr size_t kConnections = 200, kClients = 8, kStreams = 4;
constexpr std::chrono::seconds kRoutesTime{15};
constexpr size_t kLargeBodyBytes = 16'000'000, kLargeBodies = 4;
constexpr size_t kCheckpoints[] = {200, 500, 1000, 1500, 2000};
constexpr size_t kWarmUp = 500;  // requests before growth counts
constexpr size_t kAnswers[] = {1, 2, 4, 8};
constexpr double kAnswerSeconds = 2;  // of one answer alone, about
constexpr size_t kWarmUpPrompt = 512;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<uint64_t> some_ids(Random& random, size_t count) {
  std::vector<uint64_t> ids(count);
  for (uint64_t& id : ids) id = random.below(kTokens);
  return ids;
}

// Sorted first.
double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, size_t(share * double(sorted.size())))];
}

// The slope of a least-squares line.
double slope(const std::vector<std::pair<double, double>>& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [a, b] : points) {
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  const double n = double(points.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

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

using Latencies = std::map<std::string, std::vector<double>>;  // milliseconds, by path

// Asks all routes over and over, on connections that stay open, until `ends`.
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
        found[client][answer.status == 200 ? route.path : "failed"].push_back(1000 *
                                                                              seconds_since(start));
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

class ServerBench {
 public:
  ServerBench(std::string model, std::string memory, size_t rounds, Recording recording)
      : model_(std::move(model)),
        memory_(std::move(memory)),
        rounds_(rounds),
        recording_(std::move(recording)) {}

  void routes() {
    others_.look();
    Latencies found;
    double streamed = 0;
    {
      const ServedModel server(model_, arguments({"--requests", std::to_string(kStreams)}));
      std::atomic<bool> is_over = false;
      std::vector<std::thread> streams;
      for (size_t i = 0; i < kStreams; ++i)
        streams.emplace_back([&, i] { stream(server, i, is_over); });
      const Clock::time_point start = Clock::now();
      found = ask_routes(server.port(), kConnections,
                         [&] { return Clock::now() - start > kRoutesTime; });
      streamed = server.status().at("tokens").at("generated").get<double>() / seconds_since(start);
      is_over = true;
      for (std::thread& thread : streams) thread.join();
    }
    others_share_ = others_.look();
    record_latencies("routes", std::move(found),
                     {{"connections", kConnections},
                      {"streams", kStreams},
                      {"streamed_tokens_per_second", streamed}});
  }

  void bodies() {
    others_.look();
    Latencies found;
    double longest = 0;
    {
      const ServedModel server(model_, arguments({}));
      std::string text;
      while (text.size() < kLargeBodyBytes)
        text += "And the LORD said unto Moses, and more of it. ";
      const std::string body = json{{"text", text}}.dump();
      std::atomic<size_t> left = kLargeBodies;
      std::thread sender([&] {
        for (; left > 0; --left) {
          const Clock::time_point start = Clock::now();
          HttpClient(server.port()).ask("POST", "/v1/tokenize", body);
          longest = std::max(longest, seconds_since(start));
        }
      });
      found = ask_routes(server.port(), kClients, [&] { return left == 0; });
      sender.join();
    }
    others_share_ = others_.look();
    record_latencies("bodies", std::move(found),
                     {{"body_bytes", kLargeBodyBytes}, {"body_seconds", longest}});
  }

  void memory() {
    others_.look();
    ordered_json rows = ordered_json::array();
    std::vector<std::pair<double, double>> resident, ours;
    size_t broken_off = 0;
    {
      const ServedModel server(model_, arguments({"--requests", "4", "--queue", "32"}));
      size_t done = 0;
      for (const size_t checkpoint : kCheckpoints) {
        broken_off += send_requests(server, done, checkpoint);
        done = checkpoint;
        server.wait_until_idle();
        // The last connections are noticed as gone.
        std::this_thread::sleep_for(milliseconds(300));
        const ProcessMemory memory = server.memory();
        const double answers = server.metric("deltafin_kept_answer_bytes");
        const double states = server.metric("deltafin_kept_state_bytes");
        const double connections = server.metric("deltafin_connections");
        rows.push_back({{"requests", done},
                        {"resident_bytes", memory.resident_bytes},
                        {"proportional_bytes", memory.proportional_bytes},
                        {"kept_answer_bytes", answers},
                        {"kept_state_bytes", states},
                        {"connections", connections}});
        fmt::print(
            "memory/{:<5} {:8.1f} MB resident {:8.1f} MB proportional  kept: answers {:.2f} MB, "
            "states {:.1f} MB  connections {}\n",
            done, double(memory.resident_bytes) / 1e6, double(memory.proportional_bytes) / 1e6,
            answers / 1e6, states / 1e6, connections);
        if (done < kWarmUp) continue;
        resident.emplace_back(double(done), double(memory.resident_bytes));
        ours.emplace_back(double(done), double(memory.resident_bytes) - answers);
      }
    }
    others_share_ = others_.look();
    ordered_json fields = {{"checkpoints", std::move(rows)},
                           {"broken_off", broken_off},
                           {"resident_bytes_per_request", slope(resident)},
                           {"without_kept_answers_per_request", slope(ours)}};
    fmt::print(
        "memory: {:.0f} bytes a request after the first {}, {:.0f} without the answers that "
        "are kept; {} broke off\n",
        slope(resident), kWarmUp, slope(ours), broken_off);
    record("memory", fields);
  }

  void decode() {
    others_.look();
    std::map<size_t, std::vector<ordered_json>> found;
    {
      const ServedModel server(model_, arguments({"--requests", "8", "--context", "1024"}));
      Random random(11);
      HttpClient(server.port())
          .post("/v1/completions",
                {{"prompt", some_ids(random, kWarmUpPrompt)}, {"max_tokens", 1}});
      const double alone = answer_at_once(server, 1, 16).at("seconds");
      const auto tokens = size_t(std::clamp(kAnswerSeconds / (alone / 16), 16.0, 256.0));
      for (size_t round = 0; round < rounds_; ++round)
        for (const size_t count : kAnswers)
          found[count].push_back(answer_at_once(server, count, tokens));
    }
    others_share_ = others_.look();
    double alone = 0;
    for (auto& [count, rounds] : found) {
      std::ranges::sort(
          rounds, {}, [](const ordered_json& round) { return round.at("seconds").get<double>(); });
      ordered_json fields = {{"answers", count}, {"rounds", rounds.size()}};
      fields.update(rounds[rounds.size() / 2]);
      const auto field = [&](const char* name) { return fields.at(name).get<double>(); };
      const double bytes = field("expert_bytes") + field("trunk_bytes");
      const double bound =
          std::max(bytes / ram_roof_, disk_roof_ > 0 ? field("bytes_read") / disk_roof_ : 0);
      fields["bytes_per_second"] = bytes / field("seconds");
      fields["ram_roof"] = ram_roof_;
      fields["disk_roof"] = disk_roof_;
      fields["bound_tokens_per_second"] = field("tokens") / bound;
      fields["ratio"] = bound / field("seconds");
      if (count == 1) alone = field("bytes_per_second");
      fields["of_alone"] = fields.at("bytes_per_second").get<double>() / alone;
      fmt::print(
          "decode/{:<2} {:7.2f} tok/s in all  {:6.1f} experts a token  {:7.1f} MB a token of which "
          "{:5.1f} read  bound {:7.1f} tok/s  ratio {:.2f}  of alone {:.2f}\n",
          count, fields.at("tokens_per_second").get<double>(),
          fields.at("experts_per_token").get<double>(),
          (fields.at("expert_bytes").get<double>() + fields.at("trunk_bytes").get<double>()) / 1e6 /
              fields.at("tokens").get<double>(),
          fields.at("bytes_read").get<double>() / 1e6 / fields.at("tokens").get<double>(),
          fields.at("bound_tokens_per_second").get<double>(), fields.at("ratio").get<double>(),
          fields.at("of_alone").get<double>());
      record(fmt::format("decode/answers:{}", count), fields);
    }
  }

 private:
  std::vector<std::string> arguments(std::vector<std::string> more) const {
    if (!memory_.empty()) more.insert(more.end(), {"--memory", memory_});
    return more;
  }

  // One answer after the other, until the end; then it goes away in the middle.
  static void stream(const ServedModel& server, size_t number, const std::atomic<bool>& is_over) {
    Random random(number);
    while (!is_over) {
      HttpClient client(server.port());
      client.send(
          request_text("/v1/completions",
                       {{"prompt", some_ids(random, 16)}, {"max_tokens", 4000}, {"stream", true}}));
      while (!is_over && client.receive_some()) {
      }
      client.reset();
    }
  }

  // Requests [begin, end), by several clients. Returns how many broke off.
  static size_t send_requests(const ServedModel& server, size_t begin, size_t end) {
    std::atomic<size_t> next = begin, broken_off = 0;
    std::vector<std::thread> clients;
    for (size_t client = 0; client < kClients; ++client) {
      clients.emplace_back([&] {
        auto kept = std::make_unique<HttpClient>(server.port());
        for (size_t number = next++; number < end; number = next++) {
          Random random(1000 + number);
          json body = {{"prompt", some_ids(random, 1 + random.below(64))},
                       {"max_tokens", 1 + random.below(16)},
                       {"stream", random.below(2) == 0}};
          if (random.below(5) == 0) body.update({{"logprobs", 5}, {"echo", true}});
          if (random.below(3) != 0) {
            kept->post("/v1/completions", body);
            continue;
          }
          ++broken_off;
          HttpClient other(server.port());
          const std::string text = request_text("/v1/completions", body);
          const uint64_t moment = random.below(3);
          if (moment == 0) {
            other.send(std::string_view(text).substr(0, 1 + random.below(text.size() - 1)));
          } else {
            other.send(text);
            if (moment == 1) std::this_thread::sleep_for(milliseconds(random.below(20)));
            if (moment == 2) other.receive_some();
          }
          if (random.below(2) == 0) other.reset();
        }
      });
    }
    for (std::thread& client : clients) client.join();
    return broken_off;
  }

  // So many answers of as many tokens, begun together, and what their passes went through. The
  // prompts are single tokens, so that every pass is one over a row of each.
  ordered_json answer_at_once(const ServedModel& server, size_t count, size_t tokens) {
    server.wait_until_idle();
    const json before = server.status();
    std::atomic<size_t> generated = 0;
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (size_t i = 0; i < count; ++i)
      clients.push_back(std::make_unique<HttpClient>(server.port()));
    json bias = json::object();
    for (const uint64_t id : end_tokens()) bias[std::to_string(id)] = -1000;
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) {
      const std::vector<uint64_t> prompt = {next_prompt_++};
      threads.emplace_back([&, i, prompt] {
        const json body = {{"prompt", prompt}, {"max_tokens", tokens}, {"logit_bias", bias}};
        const json answer = json::parse(clients[i]->post("/v1/completions", body).body);
        generated += answer.at("usage").at("completion_tokens").get<size_t>();
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds = seconds_since(start);
    server.wait_until_idle();
    const json after = server.status();
    const auto more = [&](const char* group, const char* field) {
      return after.at(group).at(field).get<double>() - before.at(group).at(field).get<double>();
    };
    const double passes = after.at("passes").get<double>() - before.at("passes").get<double>();
    const double trunk = passes * after.at("model").at("trunk_bytes_of_pass").get<double>();
    const double experts = more("experts", "bytes_used"), read = more("disk", "bytes_read");
    ram_roof_ = std::max(ram_roof_, ram_roof());
    if (read > 0) disk_roof_ = std::max(disk_roof_, disk_roof());
    const auto all = double(generated);
    return {{"tokens", all},
            {"seconds", seconds},
            {"passes", passes},
            {"tokens_per_second", all / seconds},
            {"experts_per_token", more("experts", "used") / all},
            {"expert_bytes", experts},
            {"trunk_bytes", trunk},
            {"bytes_read", read}};
  }

  double ram_roof() {
    if (!roof_) roof_ = std::make_unique<ReadRoof>();
    return roof_->measure(team_);
  }
  double disk_roof() const {
    std::vector<std::string> shards;
    for (const auto& entry : std::filesystem::directory_iterator(model_))
      if (entry.path().extension() == ".safetensors") shards.push_back(entry.path().string());
    const auto rate = memory::probe_disk(shards, milliseconds(500));
    return rate ? rate->bytes_per_second : 1e9;
  }

  // With which an answer would end too early.
  std::vector<uint64_t> end_tokens() const {
    std::vector<uint64_t> ids;
    for (const char* name : {"config.json", "generation_config.json"}) {
      std::ifstream file(std::filesystem::path(model_) / name);
      const json config = json::parse(file, nullptr, false);
      if (!config.is_object()) continue;
      const json found = config.value("eos_token_id", json());
      if (found.is_number()) ids.push_back(found);
      if (found.is_array())
        for (const json& id : found) ids.push_back(id);
    }
    return ids;
  }

  void record_latencies(const std::string& part, Latencies found, const ordered_json& more) {
    std::vector<double> all;
    for (auto& [path, times] : found) {
      all.insert(all.end(), times.begin(), times.end());
      std::ranges::sort(times);
    }
    std::ranges::sort(all);
    found["all"] = all;
    ordered_json fields = more;
    for (const auto& [path, times] : found) {
      fields[path] = {{"requests", times.size()},
                      {"p50_ms", quantile(times, 0.5)},
                      {"p99_ms", quantile(times, 0.99)},
                      {"max_ms", times.back()}};
      fmt::print("{}{:<14} {:6} requests  p50 {:7.2f} ms  p99 {:7.2f} ms  max {:7.2f} ms\n",
                 part + " ", path, times.size(), quantile(times, 0.5), quantile(times, 0.99),
                 times.back());
    }
    record(part, fields);
  }

  void record(const std::string& what, const ordered_json& fields) {
    ordered_json line = row_start(recording_.commit, model_name(model_) + "/server/" + what);
    line.update(fields);
    line.update(ordered_json{{"memory", memory_.empty() ? "auto" : memory_},
                             {"load", load_average()},
                             {"others", others_share_}});
    std::fflush(stdout);
    if (std::ostream* stream = recording_.stream()) *stream << line << std::endl;
  }

  std::string model_, memory_;
  size_t rounds_;
  Recording recording_;
  ThreadTeam team_{usable_core_count()};
  std::unique_ptr<ReadRoof> roof_;
  double ram_roof_ = 0, disk_roof_ = 0;  // the best of all rounds
  Others others_;
  double others_share_ = 0;  // while the server of the part ran
  uint64_t next_prompt_ = 1;
};

}  // namespace
}  // namespace deltafin::bench

int main(int count, char** arguments) {
  using namespace deltafin::bench;
  std::optional<Recording> recording = Recording::open(count, arguments);
  if (!recording) return 1;
  const std::string filter = take_flag(count, arguments, "--benchmark_filter=");
  const std::string repetitions = take_flag(count, arguments, "--benchmark_repetitions=");
  const auto variable = [](const char* name, const char* otherwise) {
    const char* const value = std::getenv(name);
    return std::string(value != nullptr ? value : otherwise);
  };
  const std::string model = variable("DELTAFIN_BENCH_MODEL", "");
  ServerBench bench(model.empty() ? DELTAFIN_SOURCE_DIR "/models/demo" : model,
                    variable("DELTAFIN_BENCH_MEMORY", model.empty() ? "600MB" : ""),
                    size_t(std::max(1, std::atoi(repetitions.c_str()))), std::move(*recording));
  const auto is_wanted = [&](std::string_view part) {
    return filter.empty() || part.find(filter) != part.npos;
  };
  if (is_wanted("routes")) bench.routes();
  if (is_wanted("bodies")) bench.bodies();
  if (is_wanted("memory")) bench.memory();
  if (is_wanted("decode")) bench.decode();
  return 0;
}
