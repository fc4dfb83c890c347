#include "cli/route_trace.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace deltafin::cli {

RouteTrace::RouteTrace(EventLog& log, const checkpoint::ModelContract& contract)
    : log_(log), experts_per_row_(contract.experts_per_token()) {
  nlohmann::ordered_json experts = nlohmann::ordered_json::array();
  for (const checkpoint::LayerContract& layer : contract.layers)
    experts.push_back(layer.experts ? layer.experts->expert_count : 0);
  log_.write({{"event", "model"},
              {"architecture", contract.architecture},
              {"experts_per_row", experts_per_row_},
              {"experts_of_layers", experts}});
}

void RouteTrace::on_routes(size_t layer, std::span<const numerics::Route> routes) {
  std::vector<uint32_t> experts;
  for (const numerics::Route& route : routes) experts.push_back(route.expert);
  log_.write({{"event", "routes"},
              {"layer", layer},
              {"rows", experts.size() / experts_per_row_},
              {"experts", experts}});
}

}  // namespace deltafin::cli
