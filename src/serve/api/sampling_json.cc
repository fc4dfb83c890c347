#include "serve/api/sampling_json.h"

#include <nlohmann/json.hpp>

#include "serve/api/json_text.h"

namespace deltafin::serve {

nlohmann::ordered_json sampling_json(const engine::SamplingParameters& p) {
  const bool sampled = p.temperature > 0;
  nlohmann::ordered_json json = {{"mode", sampled ? "sample" : "greedy"},
                                 {"temperature", shortest_decimal(p.temperature)}};
  if (sampled) {
    json["top_k"] = p.top_k;
    json["top_p"] = shortest_decimal(p.top_p);
    json["min_p"] = shortest_decimal(p.min_p);
    json["seed"] = p.seed;
  }
  json["repetition_penalty"] = shortest_decimal(p.repetition_penalty);
  json["presence_penalty"] = shortest_decimal(p.presence_penalty);
  json["frequency_penalty"] = shortest_decimal(p.frequency_penalty);
  return json;
}

}  // namespace deltafin::serve
