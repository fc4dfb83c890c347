#include "cli/memory_planning.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked_math.h"
#include "cli/messages.h"
#include "cli/units.h"
#include "engine/footprint.h"

namespace deltafin::cli {

Result<std::optional<PlannedMemory>> plan_memory(const EngineFlags& flags, const Workload& workload,
                                                 ModelPreparation& model) {
  const MemoryShare share = Machine().memory();
  if (!flags.memory && !share.usable_bytes()) return std::nullopt;
  TRY(memory::Budget budget, find_budget(flags.memory.value_or(memory::AutoBudget{}), share));
  const std::string warning = budget_warning(budget, share);
  if (!warning.empty()) warn(warning);

  TRY(const checkpoint::Checkpoint* const checkpoint, model.checkpoint());
  memory::ModelSizes sizes = engine::footprint_of(*checkpoint);
  sizes.overhead_bytes += workload.output_bytes;
  // A fork shares all but what changes: recurrent states, and the last page of each cache.
  sizes.overhead_bytes +=
      workload.kept_forks *
      (sizes.state_fixed_bytes + state::kPagePositions * sizes.state_bytes_per_position);
  // --max-tokens may be any number; a sequence ends where the model's positions do.
  const uint64_t before = workload.context ? 0 : workload.loaded_positions + workload.prompt_rows;
  const uint64_t wanted =
      workload.context.value_or(checked_add(before, workload.answer_rows).value_or(UINT64_MAX));
  const uint64_t context =
      std::min(wanted, std::max(checkpoint->contract().max_positions, uint64_t{1}));
  const uint64_t kept_state_bytes =
      workload.kept_sequences *
      (sizes.state_fixed_bytes + context * sizes.state_bytes_per_position);
  sizes.overhead_bytes += kept_state_bytes;
  const memory::PlanRequest request = {
      .budget_bytes = budget.bytes,
      .context = context,
      .requests = workload.requests,
      .prompt_rows = workload.prompt_rows,
      .expert_cache_bytes = flags.expert_cache_bytes,
      .prefill_rows = flags.prefill_rows,
      .context_flag = workload.context ? "--context" : "--max-tokens",
      .context_before_flag = before,
      .budget_reason = flags.memory ? "" : budget.reason};
  Result<memory::Plan> made = make_plan(sizes, request);
  if (!made) return std::unexpected(std::move(made).error());
  const memory::Plan& plan = *made;
  model.options.expert_cache_bytes = plan.expert_cache_bytes;
  model.options.resident_layers = plan.trunk_resident_layers;
  model.options.activation_bytes = plan.activation_bytes;
  return PlannedMemory{std::move(budget), plan, std::move(sizes), kept_state_bytes};
}

Result<uint64_t> context_of(const std::optional<uint64_t>& flag,
                            const checkpoint::ModelContract& contract) {
  const uint64_t most = std::max<uint64_t>(contract.max_positions, 1);
  if (flag && *flag > most)
    return fail(ErrorCode::Usage,
                fmt::format("--context: found {}, but the model declares {} positions\n  give at "
                            "most {}",
                            *flag, most, most));
  return flag.value_or(std::min(kDefaultContext, most));
}

std::string budget_warning(const memory::Budget& budget, const MemoryShare& memory) {
  if (!budget.exceeds_machine) return "";
  return fmt::format(
      "--memory allows {}, but only {} can be used: the machine may page, which is "
      "slower than a smaller budget",
      human_bytes(budget.bytes), human_bytes(memory.usable_bytes().value_or(0)));
}

}  // namespace deltafin::cli
