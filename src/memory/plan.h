// The memory plan: what goes where under a budget, before the first byte is read. Pure.
//
// In the order of worth: overhead, the state of every request at its whole context, what the trunk
// cannot do without, a minimum of prefill rows and of expert slots; together they are the floor,
// below which nothing runs. What is above it is shared: one half for more prefill rows, up to the
// whole prompt, and one for weights; what one of them cannot use, the other gets. Of the weights
// the trunk comes first, layer by layer, because each of its bytes saves one a token, and then
// experts (docs/decisions/0011-plan.md). So more budget never gives less of anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "memory/model_sizes.h"

namespace deltafin::memory {

// Slots of the expert cache: one expert is computed while the next is read.
inline constexpr uint64_t kSlotsAtLeast = 2;

struct PlanRequest {
  uint64_t budget_bytes = 0;
  uint64_t context = 1;      // positions of a sequence, prompt and answer
  uint64_t requests = 1;     // sequences at a time, each of that context
  uint64_t prompt_rows = 1;  // of the longest prompt: more rows in a pass are worth nothing
  // Said by somebody, so not ours to choose, but counted.
  std::optional<uint64_t> expert_cache_bytes = std::nullopt, prefill_rows = std::nullopt;

  // For the advice of a refusal: which flag makes the context smaller, and how much of the context
  // that flag does not count.
  const char* context_flag = "--context";
  uint64_t context_before_flag = 0;
  std::string budget_reason = {};  // where the budget comes from, when nobody gave it as a number
};

struct Plan {
  uint64_t budget_bytes = 0;
  uint64_t floor_bytes = 0;  // the smallest budget that works

  uint64_t overhead_bytes = 0;
  uint64_t state_bytes = 0;
  uint32_t trunk_resident_layers = 0;  // the first so many stay in memory
  uint64_t trunk_resident_bytes = 0;   // with the output head and all vectors
  uint64_t trunk_buffer_bytes = 0;     // through which the other layers come, two at a time
  uint64_t trunk_streamed_bytes = 0;   // of those others, that every pass reads again
  uint64_t prefill_rows = 0;
  uint64_t activation_bytes = 0;  // of so many rows
  uint64_t expert_slots = 0;
  uint64_t expert_cache_bytes = 0;  // of so many slots

  uint64_t planned_bytes() const {
    return overhead_bytes + state_bytes + trunk_resident_bytes + trunk_buffer_bytes +
           activation_bytes + expert_cache_bytes;
  }
  uint64_t unassigned_bytes() const { return budget_bytes - planned_bytes(); }
};

// Errors: OverBudget, with what needs how much, what was given and what would help.
Result<Plan> make_plan(const ModelSizes& sizes, const PlanRequest& request);

// The smallest budget for which make_plan works.
uint64_t plan_floor(const ModelSizes& sizes, const PlanRequest& request);

// The largest context that fits into the budget of `request`, whatever its own is; 0 when none
// does.
uint64_t largest_context(const ModelSizes& sizes, const PlanRequest& request);

}  // namespace deltafin::memory
