// How tokens are chosen, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/sampler.h"

namespace deltafin::serve {

// The parameters that have an effect, without logit_bias, which may be long and has no default.
nlohmann::ordered_json sampling_json(const engine::SamplingParameters& parameters);

}  // namespace deltafin::serve
