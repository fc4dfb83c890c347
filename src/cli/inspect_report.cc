#include "cli/inspect_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "checkpoint/inventory.h"
#include "cli/inspect_dimensions.h"
#include "cli/table.h"
#include "cli/units.h"
#include "model/family.h"

namespace deltafin::cli {

using checkpoint::Completeness;
using checkpoint::Inventory;
using checkpoint::ModelContract;
using checkpoint::Problem;
using checkpoint::ProblemKind;
using checkpoint::Severity;
using checkpoint::Survey;
using nlohmann::ordered_json;

namespace {

void add_architecture(Table& table, const ModelContract& contract, const Inventory& inventory) {
  table.line("architecture", contract.architecture);
  for (const DimensionLine& line : dimension_lines(contract, inventory))
    table.line(line.name, line.value);
  table.line("parameters", fmt::format("{} ({}), active for a token {} ({})",
                                       human_count(inventory.parameter_count),
                                       with_separators(inventory.parameter_count),
                                       human_count(inventory.active_parameter_count),
                                       with_separators(inventory.active_parameter_count)));
}

void add_bytes(Table& table, const Inventory& inventory) {
  table.bytes("embedding", inventory.embedding_bytes);
  table.bytes("output head", inventory.lm_head_bytes);
  table.bytes("trunk", inventory.trunk_bytes);
  if (inventory.routed_bytes != 0) table.bytes("routed experts", inventory.routed_bytes);
  table.bytes("total", inventory.total_bytes());
  table.block();
  if (inventory.routed_bytes == 0) {
    table.bytes("cold, a token", inventory.cold_trunk_bytes);
    table.raw("  what one token reads when nothing is in memory");
    return;
  }
  table.bytes("one expert", inventory.expert_bytes);
  table.bytes("cold, a token", inventory.cold_expert_bytes);
  table.raw("  experts that one token reads when none is in memory");
}

void add_state(Table& table, const ModelContract& contract) {
  const state::Layout layout = model::state_layout(contract);
  table.bytes("state, a sequence", layout.fixed_bytes());
  table.bytes("state, a token", layout.bytes_per_position());
}

void add_checkpoint(Table& table, const Survey& survey) {
  const auto readable =
      std::ranges::count_if(survey.shards(), &checkpoint::ShardSummary::is_readable);
  uint64_t found = survey.globals().found, expected = survey.globals().expected;
  for (const Completeness& layer : survey.layers()) {
    found += layer.found;
    expected += layer.expected;
  }
  table.line("shards", fmt::format("{} of {} readable", readable, survey.shards().size()));
  table.line("tensors",
             fmt::format("{} of {} found", with_separators(found), with_separators(expected)));
  table.bytes("found", survey.found_bytes());
  for (const checkpoint::IgnoredTensors& ignored : survey.ignored())
    table.line("ignored",
               fmt::format("{}: {} {}, {}", ignored.pattern, with_separators(ignored.count),
                           ignored.count == 1 ? "tensor" : "tensors", human_bytes(ignored.bytes)));
}

void add_incomplete(Table& table, const Survey& survey) {
  std::vector<std::string> lines;
  const Completeness globals = survey.globals();
  if (!globals.is_complete())
    lines.push_back(fmt::format("embedding, output and final norms: {} of {} tensors",
                                globals.found, globals.expected));
  for (std::string& line : incomplete_layers(survey.layers())) lines.push_back(std::move(line));
  if (lines.empty()) return;
  table.block();
  table.raw("incomplete");
  for (const std::string& line : lines) table.raw("  " + line);
}

void add_problems(Table& table, const Survey& survey, Severity severity, const char* title) {
  std::vector<const Problem*> problems;
  for (const Problem& problem : survey.problems().kept())
    if (problem.severity == severity) problems.push_back(&problem);
  if (problems.empty()) return;
  table.block();
  table.raw(title);
  std::set<std::string> advice_given;
  for (const Problem* problem : problems) {
    table.raw("  " + to_line(*problem));
    if (!problem->advice.empty() && advice_given.insert(problem->advice).second)
      table.raw("      " + problem->advice);
  }
}

void add_uncounted(Table& table, const Survey& survey) {
  for (size_t i = 0; i < checkpoint::kProblemKindCount; ++i) {
    const uint64_t count = survey.problems().count_of(ProblemKind(i));
    if (count > checkpoint::ProblemList::kKeptOfEachKind)
      table.raw(fmt::format("  and {} more of the kind {}",
                            with_separators(count - checkpoint::ProblemList::kKeptOfEachKind),
                            checkpoint::name_of(ProblemKind(i))));
  }
}

std::string verdict(const Survey& survey) {
  if (survey.is_usable()) return "complete: it can be run";
  const uint64_t count = survey.problems().error_count();
  return fmt::format("cannot be run: {} {}", with_separators(count),
                     count == 1 ? "problem" : "problems");
}

// --- JSON ---

void add_contract(ordered_json& json, const ModelContract& contract) {
  const Inventory inventory = take_inventory(contract);
  const state::Layout layout = model::state_layout(contract);
  json["architecture"] = contract.architecture;
  json["layers"] = layer_counts_json(contract, inventory);
  json["dimensions"] = dimensions_json(contract);
  json["parameters"] = {{"total", inventory.parameter_count},
                        {"active", inventory.active_parameter_count}};
  json["bytes"] = {{"embedding", inventory.embedding_bytes},
                   {"lm_head", inventory.lm_head_bytes},
                   {"trunk", inventory.trunk_bytes},
                   {"routed_experts", inventory.routed_bytes},
                   {"total", inventory.total_bytes()},
                   {"one_expert", inventory.expert_bytes},
                   {"cold_experts_per_token", inventory.cold_expert_bytes},
                   {"cold_trunk_per_token", inventory.cold_trunk_bytes}};
  json["state"] = {{"bytes_per_sequence", layout.fixed_bytes()},
                   {"bytes_per_token", layout.bytes_per_position()}};
  json["tensor_count"] = inventory.tensor_count;
  json["unknown_config_fields"] = contract.unknown_fields;
}

ordered_json to_json(const Problem& problem) {
  ordered_json json = {{"severity", problem.severity == Severity::Error ? "error" : "note"},
                       {"kind", name_of(problem.kind)},
                       {"message", problem.message}};
  if (!problem.file.empty()) json["file"] = problem.file;
  if (!problem.tensor.empty()) json["tensor"] = problem.tensor;
  if (problem.layer) json["layer"] = *problem.layer;
  if (!problem.advice.empty()) json["advice"] = problem.advice;
  return json;
}

ordered_json to_json(const Completeness& part) {
  return {{"found", part.found}, {"expected", part.expected}, {"complete", part.is_complete()}};
}

ordered_json layers_json(const Survey& survey) {
  ordered_json layers = ordered_json::array();
  for (size_t i = 0; i < survey.layers().size(); ++i) {
    ordered_json layer = {{"index", i}};
    if (survey.contract()) {
      layer["mixer"] = name_of(survey.contract()->layers[i].mixer);
      layer["ffn"] = name_of(survey.contract()->layers[i].ffn);
    }
    layer.update(to_json(survey.layers()[i]));
    layers.push_back(std::move(layer));
  }
  return layers;
}

ordered_json checkpoint_json(const Survey& survey) {
  ordered_json shards = ordered_json::array(), ignored = ordered_json::array(),
               problems = ordered_json::array();
  for (const checkpoint::ShardSummary& shard : survey.shards())
    shards.push_back({{"name", shard.name},
                      {"readable", shard.is_readable},
                      {"bytes", shard.file_bytes},
                      {"tensors", shard.tensor_count}});
  for (const checkpoint::IgnoredTensors& tensors : survey.ignored())
    ignored.push_back(
        {{"pattern", tensors.pattern}, {"count", tensors.count}, {"bytes", tensors.bytes}});
  for (const Problem& problem : survey.problems().kept()) problems.push_back(to_json(problem));
  return {{"usable", survey.is_usable()},
          {"found_bytes", survey.found_bytes()},
          {"globals", to_json(survey.globals())},
          {"layers", layers_json(survey)},
          {"shards", shards},
          {"ignored_tensors", ignored},
          {"unfinished_files", survey.unfinished_files()},
          {"error_count", survey.problems().error_count()},
          {"problems", problems}};
}

}  // namespace

std::vector<std::string> incomplete_layers(const std::vector<Completeness>& layers) {
  std::vector<std::string> lines;
  for (size_t first = 0; first < layers.size();) {
    const Completeness& layer = layers[first];
    size_t last = first;
    while (last + 1 < layers.size() && layers[last + 1].found == layer.found &&
           layers[last + 1].expected == layer.expected)
      ++last;
    if (!layer.is_complete()) {
      const std::string which =
          first == last ? fmt::format("layer {}", first) : fmt::format("layers {}-{}", first, last);
      lines.push_back(fmt::format("{}: {} of {} tensors{}", which, with_separators(layer.found),
                                  with_separators(layer.expected), first == last ? "" : " each"));
    }
    first = last + 1;
  }
  return lines;
}

std::string to_text(const InspectReport& report) {
  CHECK(report.contract != nullptr);
  const Inventory inventory = take_inventory(*report.contract);
  Table table;
  table.line(report.survey != nullptr ? "checkpoint" : "config", report.place);
  if (report.survey != nullptr) table.line("verdict", verdict(*report.survey));
  table.block();
  add_architecture(table, *report.contract, inventory);
  table.block();
  add_bytes(table, inventory);
  table.block();
  add_state(table, *report.contract);
  if (!report.contract->unknown_fields.empty()) {
    table.block();
    table.line("unknown fields",
               fmt::format("{}", fmt::join(report.contract->unknown_fields, ", ")));
  }
  if (report.survey == nullptr) return table.take();
  table.block();
  add_checkpoint(table, *report.survey);
  add_incomplete(table, *report.survey);
  add_problems(table, *report.survey, Severity::Error, "problems");
  add_problems(table, *report.survey, Severity::Note, "notes");
  add_uncounted(table, *report.survey);
  return table.take();
}

ordered_json to_json(const InspectReport& report) {
  ordered_json json = {{"schema", "deltafin.inspect.v1"}, {"place", report.place}};
  if (report.contract != nullptr) add_contract(json, *report.contract);
  if (report.survey != nullptr) json["checkpoint"] = checkpoint_json(*report.survey);
  return json;
}

}  // namespace deltafin::cli
