// What a plan is worth: bytes a token reads, tokens a second, time to the first token. Pure.
//
// Routing is taken to be uniform: every expert is as likely as any other, so a token finds in
// memory the share of experts that is there. Real routing is uneven, and a cache does better.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/model_sizes.h"
#include "memory/plan.h"

namespace deltafin::memory {

// What the machine does in a second; empty where nobody knows.
struct MachineRates {
  std::optional<double> disk_bytes = std::nullopt;  // read at random places, experts at a time
  std::optional<double> ram_bytes = std::nullopt;   // read by all threads
  std::optional<double> operations = std::nullopt;  // multiplications and additions of prefill
};

enum class Limit : uint8_t { Disk, Memory, Arithmetic };
// "disk", "memory", "arithmetic"
const char* name_of(Limit limit);

struct Duration {
  double seconds = 0;
  Limit limit = Limit::Disk;  // what most of it is spent on
};

struct DecodeForecast {
  uint64_t cold_bytes = 0;    // of experts that a token reads when none is in memory
  double resident_share = 0;  // of all experts
  double expected_bytes = 0;  // from disk, of experts and of a trunk that does not fit
  double ram_bytes = 0;       // weights and state that it reads from memory, at full context
  std::optional<Duration> time =
      std::nullopt;  // of a token; empty where a rate is missing that matters
};

// Decode asks for a layer's experts when the layer's router has spoken, so the trunk's time comes
// on top of theirs; the experts that are there are computed while the others are read, and layers
// that do not stay come while those before them are computed.
DecodeForecast forecast_decode(const ModelSizes& sizes, const Plan& plan,
                               const PlanRequest& request, const MachineRates& rates);

struct PrefillForecast {
  uint64_t prompt_rows = 0;
  uint64_t passes = 0;
  // With a cold cache, each expert at most once per pass and layer; the trunk is loaded already.
  double disk_bytes = 0;
  std::optional<Duration> time = std::nullopt;  // to the first token
};

// Everything overlaps but the passes. Attention's arithmetic, which grows with the square of the
// prompt, is not counted. Where `rates.operations` is empty, the time is a lower bound.
PrefillForecast forecast_prefill(const ModelSizes& sizes, const Plan& plan, uint64_t prompt_rows,
                                 const MachineRates& rates);

// Distinct experts, of `count`, that `rows` rows use of which each uses `used`.
double distinct_experts(uint32_t count, uint32_t used, uint64_t rows);

}  // namespace deltafin::memory
