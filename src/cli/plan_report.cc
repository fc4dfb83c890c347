#include "cli/plan_report.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "cli/units.h"

namespace deltafin::cli {

using memory::DecodeForecast;
using memory::Duration;
using memory::Plan;
using memory::PrefillForecast;
using nlohmann::ordered_json;

namespace {

std::string human_seconds(double seconds) {
  return human_duration(std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9)));
}

void add_plan(Table& table, const PlanReport& report) {
  const Plan& plan = report.plan;
  table.bytes("program", plan.overhead_bytes);
  table.bytes("state", plan.state_bytes);
  table.raw(fmt::format("  {} x {} positions, {} a token", report.request.requests,
                        with_separators(report.request.context),
                        human_bytes(report.sizes.state_bytes_per_position)));
  table.bytes("trunk", plan.trunk_resident_bytes);
  table.raw(plan.trunk_streamed_bytes == 0
                ? "  all of it stays in memory"
                : fmt::format("  output head, vectors and the first {} of {} layers",
                              plan.trunk_resident_layers, report.sizes.trunk_layer_bytes.size()));
  if (plan.trunk_streamed_bytes > 0) {
    table.bytes("buffers", plan.trunk_buffer_bytes);
    table.raw(fmt::format("  two layers at a time of the others, {} that every pass reads again",
                          human_bytes(plan.trunk_streamed_bytes)));
  }
  table.bytes("prefill", plan.activation_bytes);
  table.raw(fmt::format("  {} rows a pass", with_separators(plan.prefill_rows)));
  if (report.sizes.expert_count > 0) {
    table.bytes("experts", plan.expert_cache_bytes);
    table.raw(fmt::format("  {} of {} ({:.3g} %)", with_separators(plan.expert_slots),
                          with_separators(report.sizes.expert_count),
                          100 * report.decode.resident_share));
  }
  table.bytes("planned", plan.planned_bytes());
  table.bytes("left over", plan.unassigned_bytes());
}

std::string describe(const Duration& time) {
  return fmt::format("{}, bound by {}", human_seconds(time.seconds), name_of(time.limit));
}

void add_forecast(Table& table, const PlanReport& report) {
  const DecodeForecast& decode = report.decode;
  if (report.sizes.expert_count > 0) table.bytes("cold, a token", decode.cold_bytes);
  if (decode.expected_bytes > 0 || report.sizes.expert_count > 0) {
    table.bytes("expected, a token", static_cast<uint64_t>(decode.expected_bytes));
    table.raw(
        report.plan.trunk_streamed_bytes > 0
            ? "  from disk: the layers that do not stay, and experts, if all are used equally "
              "often"
            : "  experts that one token reads from disk, if all are used equally often");
  }
  if (decode.time)
    table.line("decode", fmt::format("{:.3g} tokens/s, bound by {}", 1 / decode.time->seconds,
                                     name_of(decode.time->limit)));
  for (const PrefillForecast& prefill : report.prefills) {
    const std::string name = fmt::format("prompt of {}", prefill.prompt_rows);
    const std::string reads =
        fmt::format("{} {} from disk, cold",
                    prefill.passes == 1 ? "one pass," : fmt::format("{} passes,", prefill.passes),
                    human_bytes(prefill.disk_bytes));
    table.line(name, prefill.time
                         ? fmt::format("first token after {}; {}", describe(*prefill.time), reads)
                         : reads);
  }
}

void add_rate(Table& table, const char* name, const KnownRate& rate, const char* unit) {
  if (rate.per_second)
    table.line(name, fmt::format("{:.3g} {}, {}", *rate.per_second / 1e9, unit, rate.source));
}

ordered_json or_null(std::optional<double> number) {
  return number ? ordered_json(*number) : ordered_json();
}

ordered_json rate_json(const KnownRate& rate) {
  if (!rate.per_second) return nullptr;
  return {{"per_second", *rate.per_second}, {"source", rate.source}};
}

ordered_json limit_json(const std::optional<Duration>& time) {
  return time ? ordered_json(name_of(time->limit)) : ordered_json();
}

std::optional<double> seconds_of(const std::optional<Duration>& time) {
  return time ? std::optional(time->seconds) : std::nullopt;
}

ordered_json decode_json(const DecodeForecast& decode) {
  return {
      {"cold_bytes_per_token", decode.cold_bytes},
      {"expected_bytes_per_token", decode.expected_bytes},
      {"resident_share", decode.resident_share},
      {"ram_bytes_per_token", decode.ram_bytes},
      {"tokens_per_second",
       or_null(decode.time ? std::optional(1 / decode.time->seconds) : std::nullopt)},
      {"bound_by", limit_json(decode.time)},
  };
}

}  // namespace

std::string to_text(const PlanReport& report) {
  Table table;
  table.line("model", report.place);
  table.line("architecture", report.architecture);
  table.bytes("budget", report.plan.budget_bytes);
  table.raw("  " + report.budget.reason);
  table.bytes("floor", report.plan.floor_bytes);
  table.raw("  the smallest budget that works");
  table.block();
  add_plan(table, report);
  table.block();
  add_forecast(table, report);
  table.block();
  add_rate(table, "disk", report.disk, "GB/s");
  add_rate(table, "memory", report.memory, "GB/s");
  add_rate(table, "arithmetic", report.arithmetic, "billion operations/s");
  for (const std::string& note : report.notes) table.line("note", note);
  return table.take();
}

ordered_json to_json(const Plan& plan) {
  return {{"budget_bytes", plan.budget_bytes},
          {"floor_bytes", plan.floor_bytes},
          {"planned_bytes", plan.planned_bytes()},
          {"overhead_bytes", plan.overhead_bytes},
          {"state_bytes", plan.state_bytes},
          {"trunk",
           {{"resident_layers", plan.trunk_resident_layers},
            {"resident_bytes", plan.trunk_resident_bytes},
            {"buffer_bytes", plan.trunk_buffer_bytes},
            {"streamed_bytes", plan.trunk_streamed_bytes}}},
          {"prefill_rows", plan.prefill_rows},
          {"activation_bytes", plan.activation_bytes},
          {"expert_slots", plan.expert_slots},
          {"expert_cache_bytes", plan.expert_cache_bytes},
          {"unassigned_bytes", plan.unassigned_bytes()}};
}

ordered_json to_json(const PlanReport& report) {
  ordered_json prefills = ordered_json::array();
  for (const PrefillForecast& prefill : report.prefills)
    prefills.push_back({{"prompt_tokens", prefill.prompt_rows},
                        {"passes", prefill.passes},
                        {"disk_bytes", prefill.disk_bytes},
                        {"seconds_to_first_token", or_null(seconds_of(prefill.time))},
                        {"bound_by", limit_json(prefill.time)}});
  return {
      {"schema", "deltafin.plan.v1"},
      {"model", {{"place", report.place}, {"architecture", report.architecture}}},
      {"request", {{"context", report.request.context}, {"requests", report.request.requests}}},
      {"budget", {{"bytes", report.budget.bytes}, {"reason", report.budget.reason}}},
      {"plan", to_json(report.plan)},
      {"sizes",
       {{"state_bytes_per_sequence", report.sizes.state_fixed_bytes},
        {"state_bytes_per_token", report.sizes.state_bytes_per_position},
        {"activation_bytes_per_row", report.sizes.activation_bytes_per_row},
        {"expert_count", report.sizes.expert_count},
        {"expert_slot_bytes", report.sizes.expert_slot_bytes}}},
      {"rates",
       {{"disk", rate_json(report.disk)},
        {"memory", rate_json(report.memory)},
        {"arithmetic", rate_json(report.arithmetic)}}},
      {"decode", decode_json(report.decode)},
      {"prefill", prefills},
      {"notes", report.notes},
  };
}

}  // namespace deltafin::cli
