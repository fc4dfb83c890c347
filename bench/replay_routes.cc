// Hit rates of cache policies on routes that were recorded:
//
//   deltafin run demo --prompt TEXT --route-trace FILE
//   ninja -C build/release replay_routes && build/release/bench/replay_routes FILE...
//
// The traces are replayed one after the other through one cache, as the expert store uses it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "memory/expert_cache.h"

namespace deltafin::bench {
namespace {

using memory::CachePolicy;
using memory::ExpertCache;

// What one layer of one pass needs.
struct Step {
  size_t layer = 0;
  std::vector<size_t> keys;  // distinct
};

constexpr size_t kParts[] = {32, 16, 8, 4, 2};

struct Trace {
  size_t expert_total = 0, expert_stride = 0, layer_count = 0;
  std::vector<Step> steps;
};

void append(const std::string& path, Trace& trace) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    std::fprintf(stderr, "replay_routes: %s cannot be read\n", path.c_str());
    std::exit(1);
  }
  trace.expert_total = 0;
  const nlohmann::json head = nlohmann::json::parse(line);
  for (const size_t count : head.at("experts_of_layers")) {
    trace.expert_total += count;
    trace.expert_stride = std::max(trace.expert_stride, count);
  }
  trace.layer_count = head.at("experts_of_layers").size();
  while (std::getline(file, line)) {
    const nlohmann::json entry = nlohmann::json::parse(line);
    Step step{.layer = entry.at("layer"), .keys = {}};
    for (const size_t expert : entry.at("experts"))
      step.keys.push_back(step.layer * trace.expert_stride + expert);
    std::ranges::sort(step.keys);
    step.keys.erase(std::ranges::unique(step.keys).begin(), step.keys.end());
    trace.steps.push_back(std::move(step));
  }
}

double hit_rate(const Trace& trace, size_t slots, CachePolicy policy, double half_life) {
  ExpertCache cache(uint32_t(slots), trace.layer_count * trace.expert_stride, policy, half_life);
  uint64_t hits = 0, uses = 0;
  size_t last_layer = 0;
  for (const Step& step : trace.steps) {
    if (step.layer <= last_layer) cache.begin_pass();
    last_layer = step.layer;
    std::vector<size_t> missing;
    std::vector<ExpertCache::Slot> leased;
    for (const size_t key : step.keys) {
      if (const auto slot = cache.lease(key)) {
        leased.push_back(*slot);
      } else {
        missing.push_back(key);
      }
    }
    hits += leased.size();
    uses += step.keys.size();
    for (const ExpertCache::Slot slot : leased) cache.release(slot);
    for (const size_t key : missing) {
      const auto slot = cache.start_read(key);
      cache.read_done(*slot);
      cache.release(*slot);
    }
  }
  return double(hits) / double(uses);
}

void print_row(const Trace& trace, const std::string& name, CachePolicy policy, double half_life) {
  std::printf("%-12s", name.c_str());
  for (const size_t part : kParts)
    std::printf("%8.1f", 100 * hit_rate(trace, trace.expert_total / part, policy, half_life));
  std::printf("\n");
}

}  // namespace
}  // namespace deltafin::bench

int main(int count, char** arguments) {
  using namespace deltafin::bench;
  if (count < 2) {
    std::fprintf(stderr, "usage: replay_routes FILE...\n");
    return 2;
  }
  Trace trace;
  for (int i = 1; i < count; ++i) append(arguments[i], trace);
  std::printf("%% hits with slots for a part of %zu experts\n%-12s", trace.expert_total, "");
  for (const size_t part : kParts) std::printf("%8s", ("1/" + std::to_string(part)).c_str());
  std::printf("\n");
  print_row(trace, "lru", CachePolicy::LeastRecentlyUsed, 1);
  for (const int half_life : {4, 8, 16, 32, 64, 256})
    print_row(trace, "heat, " + std::to_string(half_life), CachePolicy::Heat, half_life);
  return 0;
}
