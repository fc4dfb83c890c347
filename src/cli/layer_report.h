// What each layer did in a run: time, waiting, experts, bytes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/engine.h"

namespace deltafin::cli {

// What happened between two looks at the counters. `before` may be empty counters.
engine::EngineCounters difference(const engine::EngineCounters& before,
                                  const engine::EngineCounters& after);

// A line for each layer with the averages of `passes` passes. Empty when there were none.
std::string layer_table(const engine::EngineCounters& counters, uint64_t passes);

// [{"layer", "seconds", "wait_seconds", "expert_seconds", "hits", "misses", "bytes_read"}], totals.
nlohmann::ordered_json layers_json(const engine::EngineCounters& counters);

}  // namespace deltafin::cli
