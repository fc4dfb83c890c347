#include "memory/forecast.h"

#include <algorithm>
#include <cmath>

namespace deltafin::memory {

namespace {

// One multiplication and one addition for each weight and row.
constexpr double kOperationsOfAWeight = 2;

// Seconds for `amount`; empty when it is something and nobody knows how fast.
std::optional<double> seconds_for(double amount, std::optional<double> rate) {
  if (amount == 0) return 0;
  if (!rate || *rate <= 0) return std::nullopt;
  return amount / *rate;
}

double distinct_in_all_layers(const ModelSizes& sizes, uint64_t rows) {
  double count = 0;
  for (const uint32_t experts : sizes.experts_of_layers)
    count += distinct_experts(experts, sizes.experts_per_token, rows);
  return count;
}

}  // namespace

const char* name_of(Limit limit) {
  switch (limit) {
    case Limit::Disk:
      return "disk";
    case Limit::Memory:
      return "memory";
    case Limit::Arithmetic:
      return "arithmetic";
  }
  return "";
}

double distinct_experts(uint32_t count, uint32_t used, uint64_t rows) {
  if (count == 0) return 0;
  const double missed = 1 - static_cast<double>(used) / count;
  return count * (1 - std::pow(missed, static_cast<double>(rows)));
}

DecodeForecast forecast_decode(const ModelSizes& sizes, const Plan& plan,
                               const PlanRequest& request, const MachineRates& rates) {
  DecodeForecast forecast;
  forecast.cold_bytes = sizes.cold_bytes_of_a_token();
  if (sizes.expert_count > 0)
    forecast.resident_share =
        static_cast<double>(plan.expert_slots) / static_cast<double>(sizes.expert_count);
  const double expert_bytes = static_cast<double>(forecast.cold_bytes);
  const double missing_bytes = expert_bytes * (1 - forecast.resident_share);
  const double streamed_bytes = static_cast<double>(plan.trunk_streamed_bytes);
  forecast.expected_bytes = missing_bytes + streamed_bytes;
  const double trunk_bytes =
      static_cast<double>(sizes.trunk_bytes_of_a_token) +
      static_cast<double>(sizes.state_fixed_bytes) +
      static_cast<double>(request.context) * static_cast<double>(sizes.state_bytes_per_position);
  forecast.ram_bytes = trunk_bytes + expert_bytes;

  const std::optional<double> missing = seconds_for(missing_bytes, rates.disk_bytes);
  const std::optional<double> streamed = seconds_for(streamed_bytes, rates.disk_bytes);
  const std::optional<double> trunk = seconds_for(trunk_bytes, rates.ram_bytes);
  const std::optional<double> experts = seconds_for(expert_bytes, rates.ram_bytes);
  if (missing && streamed && trunk && experts)
    forecast.time =
        Duration{.seconds = std::max(*trunk, *streamed) + std::max(*missing, *experts),
                 .limit = *missing + *streamed > *trunk + *experts ? Limit::Disk : Limit::Memory};
  return forecast;
}

PrefillForecast forecast_prefill(const ModelSizes& sizes, const Plan& plan, uint64_t prompt_rows,
                                 const MachineRates& rates) {
  PrefillForecast forecast;
  forecast.prompt_rows = prompt_rows;
  const uint64_t rows =
      std::clamp<uint64_t>(plan.prefill_rows, 1, std::max<uint64_t>(prompt_rows, 1));
  forecast.passes = (prompt_rows + rows - 1) / rows;
  const uint64_t whole_passes = prompt_rows / rows, last_rows = prompt_rows % rows;
  const double used = distinct_in_all_layers(sizes, rows) * static_cast<double>(whole_passes) +
                      distinct_in_all_layers(sizes, last_rows);
  // A pass goes through the layers in order, so an LRU cache that cannot hold what the prompt needs
  // has dropped the first layers' experts when the next pass comes for them.
  const double needed = distinct_in_all_layers(sizes, prompt_rows);
  const bool is_kept = needed <= static_cast<double>(plan.expert_slots);
  const double expert_bytes = static_cast<double>(sizes.expert_bytes);
  forecast.disk_bytes =
      (is_kept ? needed : used) * expert_bytes +
      static_cast<double>(forecast.passes) * static_cast<double>(plan.trunk_streamed_bytes);

  const double ram_bytes =
      used * expert_bytes +
      static_cast<double>(forecast.passes) * static_cast<double>(sizes.trunk_bytes_of_a_token);
  const double operations = kOperationsOfAWeight * static_cast<double>(sizes.active_parameters) *
                            static_cast<double>(prompt_rows);
  const std::optional<double> disk = seconds_for(forecast.disk_bytes, rates.disk_bytes);
  const std::optional<double> ram = seconds_for(ram_bytes, rates.ram_bytes);
  if (!disk || !ram) return forecast;
  const double arithmetic = seconds_for(operations, rates.operations).value_or(0);
  forecast.time = Duration{*disk, Limit::Disk};
  if (*ram > forecast.time->seconds) forecast.time = Duration{*ram, Limit::Memory};
  if (arithmetic > forecast.time->seconds) forecast.time = Duration{arithmetic, Limit::Arithmetic};
  return forecast;
}

}  // namespace deltafin::memory
