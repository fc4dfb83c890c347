// The built program as its user runs it, with less memory than the model has: in a group whose
// limit the kernel keeps, with what it reports of itself.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace deltafin::bench {

struct CappedRun {
  std::string model;
  uint64_t budget_bytes = 0;                 // --memory
  std::optional<uint64_t> limit_bytes = {};  // of the group; none: it runs in ours
  size_t prompt_count = 0;  // pseudo-random ids: even routing, the worst for caches
  size_t answer_count = 1;
  std::vector<std::string> more = {};  // arguments
};

struct CappedResult {
  nlohmann::json report;          // of --json
  uint64_t group_peak_bytes = 0;  // pages of files included
};

// The program has to end well; otherwise standard error says why, and we exit.
CappedResult run_capped(const CappedRun& run);

// What `deltafin plan` says for a sequence of `context` positions under an unlimited budget.
nlohmann::json plan_of(const std::string& model, size_t context);

// Why no run can be capped here; empty where one can.
std::string why_not_capped();

}  // namespace deltafin::bench
