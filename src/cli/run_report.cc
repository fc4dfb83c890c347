#include "cli/run_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/layer_report.h"
#include "cli/plan_report.h"
#include "cli/sampling.h"
#include "cli/units.h"
#include "numerics/kernels.h"
#include "serve/api/sampling_json.h"

namespace deltafin::cli {

using nlohmann::ordered_json;

namespace {

double share(uint64_t part, uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// The counters of the two phases, apart.
struct Phases {
  engine::EngineCounters prefill, decode;
};

Phases phases_of(const RunReport& report) {
  const engine::EngineCounters& prefill = report.after_prefill.value_or(report.at_end);
  return {.prefill = prefill, .decode = difference(prefill, report.at_end)};
}

// Of experts, that somebody needed.
uint64_t useful_bytes(const memory::ExpertCounters& experts) {
  return experts.bytes_read + experts.hint_bytes - experts.wasted_bytes;
}

double decode_bytes_per_token(const RunReport& report, const Phases& phases) {
  return share(useful_bytes(phases.decode.experts), report.result.decode_passes);
}

// What decode read in a second, of experts and of layers that do not stay.
double decode_disk_rate(const RunReport& report, const Phases& phases) {
  const uint64_t bytes = phases.decode.experts.bytes_read + phases.decode.experts.hint_bytes +
                         phases.decode.trunk.stream.bytes_read;
  return rate(bytes, report.result.decode_time);
}

ordered_json timings(const RunReport& report) {
  const engine::GenerationResult& result = report.result;
  return {
      {"load_seconds", seconds(report.load_time)},
      {"prefill_seconds", seconds(result.prefill_time)},
      {"prefill_tokens_per_second", rate(report.prefill_count, result.prefill_time)},
      {"decode_seconds", seconds(result.decode_time)},
      {"decode_passes", result.decode_passes},
      {"decode_tokens_per_second", rate(result.decode_passes, result.decode_time)},
  };
}

ordered_json counters(const RunReport& report) {
  const memory::ExpertCounters& experts = report.at_end.experts;
  const Phases phases = phases_of(report);
  return {
      {"passes", report.at_end.passes},
      {"rows", report.at_end.rows},
      {"expert_edges", experts.edges},
      {"expert_hits", experts.hits},
      {"expert_misses", experts.misses},
      {"expert_bytes_read", experts.bytes_read},
      {"prefill_expert_bytes_read", useful_bytes(phases.prefill.experts)},
      {"decode_expert_bytes_per_token", decode_bytes_per_token(report, phases)},
      {"hints", experts.hints},
      {"hints_used", experts.hints_used},
      {"hint_bytes_read", experts.hint_bytes},
      {"hint_bytes_wasted", experts.wasted_bytes},
      {"expert_cache_slots", experts.cache_slots},
      {"expert_cache_bytes", experts.cache_bytes},
      {"expert_cache_bytes_given_back", experts.given_back_bytes},
      {"trunk_bytes", report.at_end.trunk.resident_bytes},
      {"trunk_layers_resident", report.at_end.trunk.resident_layers},
      {"trunk_bytes_streamed", report.at_end.trunk.stream.bytes_read},
      {"trunk_wait_seconds", seconds(report.at_end.trunk.stream.wait)},
      {"state_bytes", report.state_bytes()},
      {"reads", report.reads.reads},
      {"read_bytes", report.reads.bytes},
      {"read_direct_bytes", report.reads.direct_bytes},
      {"read_retries", report.reads.retries},
      {"read_failures", report.reads.failures},
      {"disk_roof_bytes_per_second",
       report.disk_roof ? ordered_json(*report.disk_roof) : ordered_json()},
      {"prefill_layers", layers_json(phases.prefill)},
      {"decode_layers", layers_json(phases.decode)},
  };
}

ordered_json digest_json(const RunReport& report) {
  if (!report.digest) return nullptr;
  return {{"sha256", report.digest->sha256}, {"rows", report.digest->row_count}};
}

// "peak 1.42 GB of a budget of 1.50 GB (as --memory says)", and what was planned.
std::string memory_line(const RunReport& report) {
  std::string text = report.peak_resident_bytes
                         ? fmt::format("peak {} in use", human_bytes(*report.peak_resident_bytes))
                         : "peak unknown";
  if (!report.memory) return text;
  const memory::Plan& plan = report.memory->plan;
  return text + fmt::format(" of a budget of {} ({}), {} planned: {} rows a pass, {} expert slots",
                            human_bytes(plan.budget_bytes), report.memory->budget.reason,
                            human_bytes(plan.planned_bytes()), with_separators(plan.prefill_rows),
                            with_separators(plan.expert_slots));
}

// What came out, in both JSON forms.
void add_outcome(ordered_json& json, const RunReport& report) {
  json["ids"] = report.result.tokens;
  json["text"] = report.text ? ordered_json(*report.text) : ordered_json();
  json["stop_reason"] = name_of(report.result.reason);
  json["stop_token"] = report.stop_token ? ordered_json(*report.stop_token) : ordered_json();
  json["timings"] = timings(report);
  json["counters"] = counters(report);
  json["memory"] = {
      {"peak_resident_bytes",
       report.peak_resident_bytes ? ordered_json(*report.peak_resident_bytes) : ordered_json()},
      {"plan", memory_json(report.memory)}};
  json["logits_digest"] = digest_json(report);
  json["saved_state"] = to_json(report.saved);
}

}  // namespace

std::string describe(const LogitsDigestLine& digest) {
  return fmt::format("logits sha256 {} over {} rows", digest.sha256, digest.row_count);
}

ordered_json memory_json(const std::optional<PlannedMemory>& memory) {
  if (!memory) return nullptr;
  return to_json(memory->plan);
}

std::string summary(const RunReport& report) {
  const engine::GenerationResult& result = report.result;
  const memory::ExpertCounters& experts = report.at_end.experts;
  const Phases phases = phases_of(report);
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<11}{}\n", name, value);
  };
  line("prompt", fmt::format("{} tokens in {}, {:.1f} tokens/s", report.prefill_count,
                             human_duration(result.prefill_time),
                             rate(report.prefill_count, result.prefill_time)));
  line("generated",
       fmt::format("{} tokens, {:.1f} tokens/s after the first ({})", result.tokens.size(),
                   rate(result.decode_passes, result.decode_time), name_of(result.reason)));
  line("read", fmt::format("{} of experts for the prompt, {} a token after it",
                           human_bytes(useful_bytes(phases.prefill.experts)),
                           human_bytes(decode_bytes_per_token(report, phases))));
  line("disk",
       fmt::format("{} in {} reads, {} of it past the page cache", human_bytes(report.reads.bytes),
                   with_separators(report.reads.reads), human_bytes(report.reads.direct_bytes)));
  if (report.disk_roof && report.result.decode_passes > 0)
    line("disk rate", fmt::format("{:.2f} GB/s after the first token; reads alone get {:.2f} GB/s",
                                  decode_disk_rate(report, phases) / 1e9, *report.disk_roof / 1e9));
  line("experts", fmt::format("{} hits, {} misses: {:.1f} % came from memory",
                              with_separators(experts.hits), with_separators(experts.misses),
                              100 * share(experts.hits, experts.hits + experts.misses)));
  if (experts.hints > 0)
    line("hints", fmt::format("{} experts read ahead, {} of them used; {} read in vain",
                              with_separators(experts.hints), with_separators(experts.hints_used),
                              human_bytes(experts.wasted_bytes)));
  if (experts.given_back_bytes > 0)
    line("given back", fmt::format("{} of the cache, because memory was short",
                                   human_bytes(experts.given_back_bytes)));
  line("cache", fmt::format("{} for {} experts", human_bytes(experts.cache_bytes),
                            with_separators(experts.cache_slots)));
  line("trunk",
       fmt::format("{} in memory, loaded in {}", human_bytes(report.at_end.trunk.resident_bytes),
                   human_duration(report.load_time)));
  if (report.at_end.trunk.streamed_layers > 0)
    line("streamed",
         fmt::format("layers {} to {}, {} for every pass; waited {} for them",
                     report.at_end.trunk.resident_layers,
                     report.at_end.trunk.resident_layers + report.at_end.trunk.streamed_layers - 1,
                     human_bytes(report.at_end.trunk.streamed_bytes),
                     human_duration(report.at_end.trunk.stream.wait)));
  line("state",
       fmt::format("{}: {} + {} positions of {}", human_bytes(report.state_bytes()),
                   human_bytes(report.state_fixed_bytes), with_separators(report.position_count),
                   human_bytes(report.state_bytes_per_position)));
  line("memory", memory_line(report));
  line("machine",
       fmt::format("{} {}, {} kernels, {} reader{}", report.thread_count,
                   report.thread_count == 1 ? "thread" : "threads", report.isa, report.reader,
                   report.why_not_uring.empty() ? "" : ": " + report.why_not_uring));
  line("choice", describe(report.sampling));
  return text + layer_table(phases.decode, report.result.decode_passes);
}

// With --chat only, so that other runs keep their form.
void add_chat(ordered_json& json, const RunReport& report) {
  if (!report.chat) return;
  ordered_json calls = ordered_json::array();
  for (const text::ParsedCall& call : report.chat->calls) {
    ordered_json one = {{"id", call.id}, {"name", call.name}};
    if (call.arguments) {
      one["arguments"] = *call.arguments;
    } else {
      one["error"] = call.arguments.error().what;
      one["raw"] = call.arguments.error().raw;
    }
    calls.push_back(std::move(one));
  }
  json["chat"] = {{"template", report.chat->template_name},
                  {"reasoning", report.chat->reasoning},
                  {"tool_calls", std::move(calls)}};
}

ordered_json to_json(const RunReport& report) {
  ordered_json json = {
      {"schema", "deltafin.run.v1"},
      {"arithmetic", numerics::kArithmetic},
      {"model", {{"directory", report.directory}, {"architecture", report.architecture}}},
      {"prompt_ids", report.prompt_ids},
      {"loaded_state", to_json(report.loaded)},
  };
  add_outcome(json, report);
  add_chat(json, report);
  json["sampling"] = serve::sampling_json(report.sampling);
  json["machine"] = {
      {"threads", report.thread_count},
      {"isa", report.isa},
      {"reader", report.reader},
      {"why_not_io_uring",
       report.why_not_uring.empty() ? ordered_json() : ordered_json(report.why_not_uring)}};
  return json;
}

ordered_json run_end_event(const RunReport& report, std::chrono::nanoseconds elapsed) {
  ordered_json json = {{"event", "run_end"}, {"elapsed_seconds", seconds(elapsed)}};
  add_outcome(json, report);
  add_chat(json, report);
  return json;
}

}  // namespace deltafin::cli
