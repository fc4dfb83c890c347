// Which experts each row was routed to, as JSON lines: what cache policies and hints are judged by.
#pragma once

#include <span>

#include "cli/events.h"
#include "model/model.h"

namespace deltafin::cli {

// A "model" event, then for each layer of each pass, in the order of computation, a "routes" event:
// {"layer", "rows", "experts": those of row after row, in router order}.
inline constexpr const char* kRouteSchema = "deltafin.routes.v1";

class RouteTrace final : public model::Observer {
 public:
  // `log` must outlive the trace.
  RouteTrace(EventLog& log, const checkpoint::ModelContract& contract);
  void on_routes(size_t layer, std::span<const numerics::Route> routes) override;

 private:
  EventLog& log_;
  const size_t experts_per_row_;
};

}  // namespace deltafin::cli
