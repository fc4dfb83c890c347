#include "cli/layer_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace deltafin::cli {

using engine::EngineCounters;
using memory::LayerExpertCounters;

EngineCounters difference(const EngineCounters& before, const EngineCounters& after) {
  EngineCounters result = after;
  memory::ExpertCounters& experts = result.experts;
  experts.experts_used -= before.experts.experts_used;
  experts.edges -= before.experts.edges;
  experts.hits -= before.experts.hits;
  experts.misses -= before.experts.misses;
  experts.bytes_read -= before.experts.bytes_read;
  experts.hints -= before.experts.hints;
  experts.hints_used -= before.experts.hints_used;
  experts.hint_bytes -= before.experts.hint_bytes;
  experts.wasted_bytes -= before.experts.wasted_bytes;
  for (size_t i = 0; i < std::min(experts.layers.size(), before.experts.layers.size()); ++i) {
    LayerExpertCounters& layer = experts.layers[i];
    const LayerExpertCounters& earlier = before.experts.layers[i];
    layer.hits -= earlier.hits;
    layer.misses -= earlier.misses;
    layer.bytes_read -= earlier.bytes_read;
    layer.wait -= earlier.wait;
    layer.compute -= earlier.compute;
  }
  for (size_t i = 0; i < std::min(result.layer_times.size(), before.layer_times.size()); ++i)
    result.layer_times[i] -= before.layer_times[i];
  result.trunk.stream.layers_read -= before.trunk.stream.layers_read;
  result.trunk.stream.bytes_read -= before.trunk.stream.bytes_read;
  result.trunk.stream.wait -= before.trunk.stream.wait;
  result.passes -= before.passes;
  result.rows -= before.rows;
  return result;
}

std::string layer_table(const EngineCounters& counters, uint64_t passes) {
  if (passes == 0) return "";
  const auto average = [&](double total) { return total / static_cast<double>(passes); };
  const auto milliseconds = [&](std::chrono::nanoseconds time) {
    return average(1e3 * seconds(time));
  };
  std::string text = "layer        ms   waiting   experts     hits   misses        MB\n";
  for (size_t i = 0; i < counters.layer_times.size(); ++i) {
    const LayerExpertCounters& experts = counters.experts.layers[i];
    text += fmt::format("{:>5} {:>9.3f} {:>9.3f} {:>9.3f} {:>8.2f} {:>8.2f} {:>9.2f}\n", i,
                        milliseconds(counters.layer_times[i]), milliseconds(experts.wait),
                        milliseconds(experts.compute), average(static_cast<double>(experts.hits)),
                        average(static_cast<double>(experts.misses)),
                        average(static_cast<double>(experts.bytes_read)) / 1e6);
  }
  return text;
}

nlohmann::ordered_json layers_json(const EngineCounters& counters) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (size_t i = 0; i < counters.layer_times.size(); ++i) {
    const LayerExpertCounters& experts = counters.experts.layers[i];
    layers.push_back({{"layer", i},
                      {"seconds", seconds(counters.layer_times[i])},
                      {"wait_seconds", seconds(experts.wait)},
                      {"expert_seconds", seconds(experts.compute)},
                      {"hits", experts.hits},
                      {"misses", experts.misses},
                      {"bytes_read", experts.bytes_read}});
  }
  return layers;
}

}  // namespace deltafin::cli
