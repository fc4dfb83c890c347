#include "memory/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/checked_math.h"
#include "base/limits.h"

namespace deltafin::memory {

namespace {

// A verify pass has as many rows, and a prefill of fewer reads the experts of the whole model again
// for every few tokens.
constexpr uint64_t kRowsAtLeast = limits::kVerifyRows;
// Cache rows are allocated in pages of so many positions (state/layout.h).
constexpr uint64_t kPagePositions = 512;

// Sums and products that end at the largest number: a request may ask for anything, and what does
// not fit into 64 bits does not fit into any memory either.
uint64_t plus(uint64_t a, uint64_t b) { return checked_add(a, b).value_or(UINT64_MAX); }
uint64_t times(uint64_t a, uint64_t b) { return checked_multiply(a, b).value_or(UINT64_MAX); }

// The recurrent part exists twice: as it was committed, and as the pass at hand leaves it.
uint64_t state_fixed_bytes(const ModelSizes& sizes, const PlanRequest& request) {
  return times(request.requests, times(2, sizes.state_fixed_bytes));
}

uint64_t state_page_bytes(const ModelSizes& sizes, const PlanRequest& request) {
  return times(request.requests, times(kPagePositions, sizes.state_bytes_per_position));
}

uint64_t state_bytes(const ModelSizes& sizes, const PlanRequest& request) {
  const uint64_t pages = (request.context + kPagePositions - 1) / kPagePositions;
  return plus(state_fixed_bytes(sizes, request), times(pages, state_page_bytes(sizes, request)));
}

// How much of the layers stays in memory.
struct TrunkShare {
  uint32_t layers = 0;
  uint64_t resident = 0;  // of so many layers
  uint64_t buffers = 0;   // two of the largest that come through them
  uint64_t streamed = 0;  // the others

  uint64_t bytes() const { return resident + buffers; }
};

// The layers from `first` on come through buffers.
TrunkShare trunk_with_first(const ModelSizes& sizes, size_t first) {
  TrunkShare share{.layers = static_cast<uint32_t>(first)};
  for (size_t layer = 0; layer < sizes.trunk_layer_bytes.size(); ++layer) {
    const uint64_t bytes = sizes.trunk_layer_bytes[layer];
    (layer < first ? share.resident : share.streamed) += bytes;
    if (layer >= first) share.buffers = std::max(share.buffers, 2 * bytes);
  }
  return share;
}

// What needs the least memory: not always no layer, for the largest may be among the first.
TrunkShare least_trunk(const ModelSizes& sizes) {
  TrunkShare least = trunk_with_first(sizes, sizes.trunk_layer_bytes.size());
  for (size_t first = 0; first < sizes.trunk_layer_bytes.size(); ++first) {
    const TrunkShare share = trunk_with_first(sizes, first);
    if (share.bytes() < least.bytes()) least = share;
  }
  return least;
}

// As many layers as `bytes` hold, which are at least those of least_trunk().
TrunkShare share_of_trunk(const ModelSizes& sizes, uint64_t bytes) {
  for (size_t first = sizes.trunk_layer_bytes.size(); first > 0; --first) {
    const TrunkShare share = trunk_with_first(sizes, first);
    if (share.bytes() <= bytes) return share;
  }
  return trunk_with_first(sizes, 0);
}

struct Range {
  uint64_t least = 0, most = 0;
};

Range rows_range(const PlanRequest& request) {
  if (request.prefill_rows) {
    const uint64_t rows =
        std::min(*request.prefill_rows, std::max<uint64_t>(request.prompt_rows, 1));
    return {rows, rows};
  }
  const uint64_t most = std::max<uint64_t>(request.prompt_rows, 1);
  return {std::min(kRowsAtLeast, most), most};
}

Range slots_range(const ModelSizes& sizes, const PlanRequest& request) {
  const uint64_t all = sizes.expert_count;
  // The experts of a token in one layer are read at once.
  const uint64_t least = std::max<uint64_t>(kSlotsAtLeast, sizes.experts_per_token);
  if (!request.expert_cache_bytes || all == 0) return {std::min(least, all), all};
  const uint64_t slots = *request.expert_cache_bytes / sizes.expert_slot_bytes;
  const uint64_t pinned = std::min(std::max(slots, kSlotsAtLeast), all);
  return {pinned, pinned};
}

std::string amount(uint64_t bytes) {
  const double count = static_cast<double>(bytes);
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", count / 1e3);
  if (bytes < 1'000'000'000) return fmt::format("{:.1f} MB", count / 1e6);
  return fmt::format("{:.2f} GB", count / 1e9);
}

// `bytes` as a flag takes it, rounded up so that it is enough.
std::string enough(uint64_t bytes) {
  const double count = static_cast<double>(bytes);
  if (bytes < 1'000'000'000) return fmt::format("{:.0f}MB", std::ceil(count / 1e6));
  return fmt::format("{:.1f}GB", std::ceil(count / 1e8) / 10);
}

std::string parts_of(const ModelSizes& sizes, const PlanRequest& request) {
  const Range rows = rows_range(request), slots = slots_range(sizes, request);
  const TrunkShare trunk = least_trunk(sizes);
  std::string text =
      fmt::format("  trunk {}{}, state of {} x {} positions {}, activations of {} rows {}",
                  amount(sizes.trunk_fixed_bytes + trunk.bytes()),
                  trunk.streamed > 0 ? ", its layers read again for every pass" : "",
                  request.requests, request.context, amount(state_bytes(sizes, request)),
                  rows.least, amount(times(rows.least, sizes.activation_bytes_per_row)));
  if (slots.least > 0)
    text += fmt::format(", {} expert slots {}", slots.least,
                        amount(times(slots.least, sizes.expert_slot_bytes)));
  return text + fmt::format(", the program {}", amount(sizes.overhead_bytes));
}

std::string advice_for(const ModelSizes& sizes, const PlanRequest& request) {
  std::vector<std::string> ways;
  const uint64_t context = largest_context(sizes, request);
  if (context > request.context_before_flag && context < request.context)
    ways.push_back(
        fmt::format("{} {}", request.context_flag, context - request.context_before_flag));
  if (request.expert_cache_bytes) ways.emplace_back("a smaller --expert-cache");
  if (request.prefill_rows) ways.emplace_back("fewer --prefill-rows");
  if (request.requests > 1) ways.emplace_back("fewer --requests");
  ways.push_back(fmt::format("--memory {}", enough(plan_floor(sizes, request))));
  std::string text = "  try: ";
  for (size_t i = 0; i < ways.size(); ++i) text += (i > 0 ? ", or " : "") + ways[i];
  return text;
}

std::unexpected<Error> refuse(const ModelSizes& sizes, const PlanRequest& request) {
  const std::string reason =
      request.budget_reason.empty() ? "" : fmt::format(" ({})", request.budget_reason);
  const std::string text =
      fmt::format("this needs at least {} of memory and {} is allowed{}\n{}\n",
                  amount(plan_floor(sizes, request)), amount(request.budget_bytes), reason,
                  parts_of(sizes, request));
  return fail(ErrorCode::OverBudget, text + advice_for(sizes, request));
}

}  // namespace

uint64_t plan_floor(const ModelSizes& sizes, const PlanRequest& request) {
  const uint64_t rows = times(rows_range(request).least, sizes.activation_bytes_per_row);
  const uint64_t slots = times(slots_range(sizes, request).least, sizes.expert_slot_bytes);
  const uint64_t trunk = plus(sizes.trunk_fixed_bytes, least_trunk(sizes).bytes());
  return plus(plus(sizes.overhead_bytes, trunk),
              plus(state_bytes(sizes, request), plus(rows, slots)));
}

uint64_t largest_context(const ModelSizes& sizes, const PlanRequest& request) {
  PlanRequest none = request;
  none.context = 0;
  const uint64_t needed = plan_floor(sizes, none);
  if (needed > request.budget_bytes) return 0;
  const uint64_t page = state_page_bytes(sizes, request);
  if (page == 0) return limits::kPositions;
  return std::min<uint64_t>((request.budget_bytes - needed) / page * kPagePositions,
                            limits::kPositions);
}

Result<Plan> make_plan(const ModelSizes& sizes, const PlanRequest& request) {
  Plan plan{.budget_bytes = request.budget_bytes, .floor_bytes = plan_floor(sizes, request)};
  if (plan.floor_bytes > plan.budget_bytes) return refuse(sizes, request);
  plan.overhead_bytes = sizes.overhead_bytes;
  plan.state_bytes = state_bytes(sizes, request);

  // Each takes its half, or what the other leaves over when it has everything: both only grow with
  // the budget, and together they are never more than what is free.
  const Range rows = rows_range(request), slots = slots_range(sizes, request);
  const uint64_t row_bytes = std::max<uint64_t>(sizes.activation_bytes_per_row, 1);
  const uint64_t slot_bytes = std::max<uint64_t>(sizes.expert_slot_bytes, 1);
  const uint64_t free = plan.budget_bytes - plan.floor_bytes;
  const auto share_beside = [free](uint64_t most_of_the_other) {
    return std::max(free / 2, free - std::min(free, most_of_the_other));
  };
  const uint64_t least_for_layers = least_trunk(sizes).bytes();
  const uint64_t rest_of_trunk = sizes.trunk_bytes() - sizes.trunk_fixed_bytes - least_for_layers;
  const uint64_t for_rows =
      share_beside(plus(rest_of_trunk, times(slots.most - slots.least, slot_bytes)));
  const uint64_t for_weights = share_beside(times(rows.most - rows.least, row_bytes));
  // Slots only get what the whole trunk leaves: what a layer just misses lies idle, or else one
  // layer more would cost slots.
  const uint64_t for_slots = for_weights - std::min(for_weights, rest_of_trunk);
  const TrunkShare trunk = share_of_trunk(sizes, least_for_layers + for_weights);
  plan.trunk_resident_layers = trunk.layers;
  plan.trunk_resident_bytes = sizes.trunk_fixed_bytes + trunk.resident;
  plan.trunk_buffer_bytes = trunk.buffers;
  plan.trunk_streamed_bytes = trunk.streamed;
  plan.prefill_rows = std::min(rows.most, rows.least + for_rows / row_bytes);
  plan.expert_slots = std::min(slots.most, slots.least + for_slots / slot_bytes);
  plan.activation_bytes = plan.prefill_rows * sizes.activation_bytes_per_row;
  plan.expert_cache_bytes = plan.expert_slots * sizes.expert_slot_bytes;
  return plan;
}

}  // namespace deltafin::memory
