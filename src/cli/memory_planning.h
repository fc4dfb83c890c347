// From --memory to a plan, and from a plan to the options of an engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/machine.h"
#include "base/result.h"
#include "checkpoint/contract.h"
#include "cli/model_loading.h"
#include "engine/engine.h"
#include "memory/budget.h"
#include "memory/model_sizes.h"
#include "memory/plan.h"

namespace deltafin::cli {

struct PlannedMemory {
  memory::Budget budget;
  memory::Plan plan;
  memory::ModelSizes sizes = {};
  uint64_t kept_state_bytes = 0;  // for Workload::kept_sequences, beside the plan
};

// What a command is going to do with a model.
struct Workload {
  uint64_t loaded_positions = 0;  // of a state that is there already
  uint64_t prompt_rows = 1;
  uint64_t answer_rows = 0;     // at most
  uint64_t output_bytes = 0;    // kept beside everything else
  uint64_t kept_forks = 0;      // of the sequence, that hold an earlier state of it
  uint64_t requests = 1;        // sequences at a time
  uint64_t kept_sequences = 0;  // of the whole context, beside those
  // The positions that --context says, whatever the others are; without it these count.
  std::optional<uint64_t> context = std::nullopt;
};

// The tokens of a conversation, where --context does not say.
inline constexpr uint64_t kDefaultContext = 8192;
// What --context says, or that, or what the model can. Errors: Usage, for more than the model can.
Result<uint64_t> context_of(const std::optional<uint64_t>& flag,
                            const checkpoint::ModelContract& contract);

// The plan for what --memory allows, or without that flag for what this process may use, with the
// sizes of the checkpoint. Its numbers are in the options of `model` afterwards. Empty, and the
// options as they were, when nobody says and this machine does not say either. Errors: OverBudget,
// before anything is loaded; BadModel and Io, when the checkpoint is not complete.
Result<std::optional<PlannedMemory>> plan_memory(const EngineFlags& flags, const Workload& workload,
                                                 ModelPreparation& model);

// A line about a budget that this machine does not have; empty when it has.
std::string budget_warning(const memory::Budget& budget, const MemoryShare& memory);

}  // namespace deltafin::cli
