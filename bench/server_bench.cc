// The server under load: the built program, asked over HTTP by clients of which many go away.
//
//   [DELTAFIN_BENCH_MODEL=DIRECTORY] [DELTAFIN_BENCH_MEMORY=1800MB] ./x bench server
//       [--benchmark_filter=routes|bodies|memory|decode|prefill] [--benchmark_repetitions=ROUNDS]
//
//   routes  how long the routes that generate nothing take, over 200 connections that stay open,
//           while four answers stream
//   bodies  the same while prompts of 16 MB are tokenized
//   memory  what the server holds after 200 to 2000 requests, of which a third breaks off
//   decode  tokens a second of 1, 2, 4 and 8 answers at a time, against what the bytes that their
//           passes go through (distinct experts, and the trunk once a pass) take at the machine's
//           best rates of memory and, as far as they were read, of the disk. `of_alone` compares
//           bytes a second with those of one answer.
//   prefill what two answers keep of their rate while a long prompt is read, and what reading it
//           takes against reading it alone
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
#include "memory/probe.h"
#include "parts.h"
#include "roofs.h"
#include "route_latency.h"
#include "served_model.h"

namespace deltafin::bench {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uint64_t kTokens = 500;  // every model has so many
constexpr size_t kConnections = 200, kStreams = 4;
constexpr std::chrono::seconds kRoutesTime{15};
constexpr size_t kLargeBodyBytes = 16'000'000, kLargeBodies = 4;
constexpr size_t kCheckpoints[] = {200, 500, 1000, 1500, 2000};
constexpr size_t kWarmUp = 500;  // requests before growth counts
constexpr size_t kAnswers[] = {1, 2, 4, 8};
constexpr double kAnswerSeconds = 2;  // of one answer alone, about
constexpr size_t kWarmUpPrompt = 512;
// Long enough for what a disk that rations bytes lets pass at first to say little.
constexpr milliseconds kDiskProbeTime{4000};
constexpr size_t kAnswersBeside = 2, kLongPrompt = 1024;
constexpr std::chrono::seconds kAloneTime{4};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<uint64_t> some_ids(Random& random, size_t count) {
  std::vector<uint64_t> ids(count);
  for (uint64_t& id : ids) id = random.below(kTokens);
  return ids;
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

class ServerBench {
 public:
  ServerBench(std::string model, std::string memory, Parts parts)
      : model_(std::move(model)), memory_(std::move(memory)), parts_(std::move(parts)) {}

  void run() {
    if (parts_.is_wanted("routes")) routes();
    if (parts_.is_wanted("bodies")) bodies();
    if (parts_.is_wanted("memory")) memory();
    if (parts_.is_wanted("decode")) decode();
    if (parts_.is_wanted("prefill")) prefill();
  }

 private:
  void routes() {
    parts_.begin();
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
    parts_.end();
    record_latencies("routes", std::move(found),
                     {{"connections", kConnections},
                      {"streams", kStreams},
                      {"streamed_tokens_per_second", streamed}});
  }

  void bodies() {
    parts_.begin();
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
    parts_.end();
    record_latencies("bodies", std::move(found),
                     {{"body_bytes", kLargeBodyBytes}, {"body_seconds", longest}});
  }

  void memory() {
    parts_.begin();
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
    parts_.end();
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
    parts_.begin();
    std::map<size_t, std::vector<ordered_json>> found;
    {
      const ServedModel server(model_, arguments({"--requests", "8", "--context", "1024"}));
      Random random(11);
      HttpClient(server.port())
          .post("/v1/completions",
                {{"prompt", some_ids(random, kWarmUpPrompt)}, {"max_tokens", 1}});
      const double alone = answer_at_once(server, 1, 16).at("seconds");
      const auto tokens = size_t(std::clamp(kAnswerSeconds / (alone / 16), 16.0, 256.0));
      for (size_t round = 0; round < parts_.rounds(); ++round)
        for (const size_t count : kAnswers)
          found[count].push_back(answer_at_once(server, count, tokens));
    }
    parts_.end();
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

  void prefill() {
    parts_.begin();
    std::vector<ordered_json> found;
    {
      const ServedModel server(model_, arguments({"--requests", "3", "--context", "8192"}));
      for (size_t round = 0; round < parts_.rounds(); ++round)
        found.push_back(read_beside_answers(server));
    }
    parts_.end();
    std::ranges::sort(found, {},
                      [](const ordered_json& round) { return round.at("kept").get<double>(); });
    ordered_json fields = {{"rounds", found.size()}};
    fields.update(found[(found.size() - 1) / 2]);
    fmt::print(
        "prefill: {} answers keep {:.2f} of {:.1f} tok/s while {} tokens are read, which takes "
        "{:.1f} s "
        "and {:.1f} s alone\n",
        kAnswersBeside, fields.at("kept").get<double>(),
        fields.at("undisturbed_tokens_per_second").get<double>(), kLongPrompt,
        fields.at("seconds").get<double>(), fields.at("seconds_alone").get<double>());
    record("prefill", fields);
  }

  // A prompt alone, answers alone, and both.
  ordered_json read_beside_answers(const ServedModel& server) {
    const auto read_prompt = [&] {
      Random random(next_prompt_++);
      const Clock::time_point start = Clock::now();
      HttpClient(server.port())
          .post("/v1/completions", {{"prompt", some_ids(random, kLongPrompt)}, {"max_tokens", 0}});
      return seconds_since(start);
    };
    server.wait_until_idle();
    const double alone = read_prompt();
    std::atomic<bool> is_over = false;
    std::vector<std::thread> streams;
    for (size_t i = 0; i < kAnswersBeside; ++i)
      streams.emplace_back([&, i] { stream(server, i, is_over); });
    const auto generated = [&] {
      return server.status().at("tokens").at("generated").get<double>();
    };
    const auto rate_while = [&](const auto& act) {
      const double before = generated();
      const Clock::time_point start = Clock::now();
      act();
      return (generated() - before) / seconds_since(start);
    };
    while (generated() < 8 * kAnswersBeside) std::this_thread::sleep_for(milliseconds(20));
    // Before and after: the machine changes its mind.
    const auto listen = [&] { std::this_thread::sleep_for(kAloneTime); };
    const double before = rate_while(listen);
    double seconds = 0;
    const double meanwhile = rate_while([&] { seconds = read_prompt(); });
    const double after = rate_while(listen);
    is_over = true;
    for (std::thread& thread : streams) thread.join();
    const double undisturbed = (before + after) / 2;
    return {{"answers", kAnswersBeside},
            {"prompt_tokens", kLongPrompt},
            {"undisturbed_tokens_per_second", undisturbed},
            {"tokens_per_second", meanwhile},
            {"kept", meanwhile / undisturbed},
            {"seconds", seconds},
            {"seconds_alone", alone}};
  }

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
    const auto rate = memory::probe_disk(shards, kDiskProbeTime);
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

  void record(const std::string& what, ordered_json fields) {
    fields["memory"] = memory_.empty() ? "auto" : memory_;
    parts_.write(model_name(model_) + "/server/" + what, fields);
  }

  std::string model_, memory_;
  Parts parts_;
  ThreadTeam team_{usable_core_count()};
  std::unique_ptr<ReadRoof> roof_;
  double ram_roof_ = 0, disk_roof_ = 0;  // the best of all rounds
  uint64_t next_prompt_ = 1;
};

}  // namespace
}  // namespace deltafin::bench

int main(int count, char** arguments) {
  using namespace deltafin::bench;
  std::optional<Parts> parts = Parts::open(count, arguments);
  if (!parts) return 1;
  const auto variable = [](const char* name, const char* otherwise) {
    const char* const value = std::getenv(name);
    return std::string(value != nullptr ? value : otherwise);
  };
  const std::string model = variable("DELTAFIN_BENCH_MODEL", "");
  ServerBench bench(model.empty() ? DELTAFIN_SOURCE_DIR "/models/demo" : model,
                    variable("DELTAFIN_BENCH_MEMORY", model.empty() ? "600MB" : ""),
                    std::move(*parts));
  bench.run();
  return 0;
}
