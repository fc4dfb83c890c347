// How tokens are chosen, and floats, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/sampler.h"

namespace deltafin::serve {

// 0.6f as 0.6 and not as 0.60000002384: the shortest decimal that reads back as the same float.
double shortest_decimal(float value);

// The parameters that have an effect, without logit_bias, which may be long and has no default.
nlohmann::ordered_json sampling_json(const engine::SamplingParameters& parameters);

}  // namespace deltafin::serve
