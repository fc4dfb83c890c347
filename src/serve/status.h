// How the server is, for the page (docs/status.md) and for Prometheus. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "serve/engine_loop.h"
#include "serve/http/http_server.h"

namespace deltafin::serve {

// What does not change while the server runs.
struct ServedModel {
  std::string id;            // as clients call it
  std::string architecture;  // "KimiK3ForConditionalGeneration"
  uint64_t layers = 0;
  uint64_t parameters_bytes = 0;     // of the checkpoint's tensors
  uint64_t trunk_bytes = 0;          // of those, all but routed experts
  uint64_t trunk_bytes_of_pass = 0;  // that every pass goes through; 0: nobody knows
  uint64_t expert_bytes = 0;         // one, as it is read; 0: nobody knows
  uint64_t budget_bytes = 0;         // of memory; 0: nobody knows
  uint64_t trunk_buffer_bytes = 0;   // planned, for layers that are read again and again
  uint64_t state_bytes = 0;          // planned for sequences and kept states
  uint64_t activation_bytes = 0;     // planned
  std::string version;
};

struct ServerLook {
  const ServedModel& model;
  const EngineStatus& engine;
  const HttpCounters& http;
  uint64_t request_limit = 0;
  uint64_t kept_answer_bytes = 0;               // of finished answers in memory
  std::optional<double> disk_bytes_per_second;  // what reads alone get
  uint64_t resident_bytes = 0;                  // of this process now
  std::chrono::nanoseconds uptime{0};
};

std::string status_json(const ServerLook& look);
// In the text format 0.0.4.
std::string metrics_text(const ServerLook& look);

}  // namespace deltafin::serve
