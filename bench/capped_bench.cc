// A model under less memory than it has: decode and prefill under a cap, at the smallest budget
// that the plan allows, and at six budgets up to everything, against the disk.
//
//   DELTAFIN_BENCH_MODEL=DIRECTORY [DELTAFIN_BENCH_CAP=1500MB] ./x bench capped
//       [--benchmark_filter=decode|prefill|sweep] [--benchmark_repetitions=ROUNDS]
//
// Runs the built program in memory groups, which takes root and cgroup v1. The rows of a part are
// measured by turns, each run right behind a probe of the disk; a row is the median of its rounds,
// the roof is the best probe of all. The prompt is pseudo-random.
//
// `bound` is what a token takes when the disk is never idle and only the work that has nothing to
// read beside it comes on top: (distinct bytes that were demanded and not there) / roof + compute.
// Compute is taken from the runs with everything in memory: time per token less that of experts.
// Hints read beside that compute too, so that a ratio below 1 is theirs.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "capped_run.h"
#include "memory/probe.h"
#include "parts.h"

namespace deltafin::bench {
namespace {

using nlohmann::json;

// What the kernel may hold for a process beside the budget, as in tests/cli/ceiling_test.cc.
constexpr uint64_t kBesideBudget = 64ull << 20;
constexpr size_t kPrompt = 128, kLongPrompt = 512, kAnswer = 41;
// At the floor most of the trunk is read for every token.
constexpr size_t kAnswerAtFloor = 9;
constexpr size_t kSweepBudgets = 6;
constexpr std::chrono::milliseconds kProbeTime{1000};

struct Row {
  std::string name;
  CappedRun run;
  std::vector<CappedResult> results = {};

  double median(const std::function<double(const json&)>& value) const {
    std::vector<double> values;
    for (const CappedResult& result : results) values.push_back(value(result.report));
    std::ranges::sort(values);
    return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
  }
};

double sum(const json& layers, const char* field) {
  double total = 0;
  for (const json& layer : layers) total += layer.at(field).get<double>();
  return total;
}

double seconds_per_token(const json& report) {
  const json& timings = report.at("timings");
  return timings.at("decode_seconds").get<double>() / timings.at("decode_passes").get<double>();
}

double prefill_rate(const json& report) {
  return report.at("timings").at("prefill_tokens_per_second");
}

double prefill_expert_bytes(const json& report) {
  return report.at("counters").at("prefill_expert_bytes_read");
}

// Of a token whose experts are all in memory: what no read of experts can be hidden behind.
double compute_seconds(const json& report) {
  const json& layers = report.at("counters").at("decode_layers");
  return seconds_per_token(report) - (sum(layers, "expert_seconds") + sum(layers, "wait_seconds")) /
                                         report.at("timings").at("decode_passes").get<double>();
}

double missed_bytes(const json& report) {
  return report.at("counters").at("decode_expert_bytes_per_token").get<double>() +
         report.at("memory").at("plan").at("trunk").at("streamed_bytes").get<double>();
}

double hit_rate(const json& report) {
  const json& layers = report.at("counters").at("decode_layers");
  const double hits = sum(layers, "hits"), misses = sum(layers, "misses");
  return hits / std::max(hits + misses, 1.0);
}

// The numbers of a run that do not depend on others.
nlohmann::ordered_json fields_of(const Row& row) {
  uint64_t peak = 0, group_peak = 0;
  for (const CappedResult& result : row.results) {
    peak = std::max(peak, result.report.at("memory").at("peak_resident_bytes").get<uint64_t>());
    group_peak = std::max(group_peak, result.group_peak_bytes);
  }
  const double seconds = row.median(seconds_per_token);
  return {{"rounds", row.results.size()},
          {"budget_bytes", row.run.budget_bytes},
          {"limit_bytes", row.run.limit_bytes ? json(*row.run.limit_bytes) : json()},
          {"peak_resident_bytes", peak},
          {"group_peak_bytes", group_peak},
          {"decode_tokens_per_second", 1 / seconds},
          {"decode_seconds_per_token", seconds},
          {"missed_bytes_per_token", row.median(missed_bytes)},
          {"hit_rate", row.median(hit_rate)},
          {"hint_bytes_wasted", row.median([](const json& report) {
             return report.at("counters").at("hint_bytes_wasted").get<double>();
           })},
          {"prefill_tokens_per_second", row.median(prefill_rate)}};
}

class CappedBench {
 public:
  CappedBench(std::string model, uint64_t cap, Parts parts)
      : model_(std::move(model)), cap_(cap), parts_(std::move(parts)) {
    for (const auto& entry : std::filesystem::directory_iterator(model_))
      if (entry.path().extension() == ".safetensors") shards_.push_back(entry.path().string());
  }

  void run() {
    if (parts_.is_wanted("decode")) decode();
    if (parts_.is_wanted("prefill")) prefill();
    if (parts_.is_wanted("sweep")) sweep();
  }

 private:
  void decode() {
    const uint64_t floor = plan_of(model_, kPrompt + kAnswer).at("floor_bytes");
    std::vector<Row> rows = {in_memory(kPrompt)};
    for (const auto& [place, budget] :
         {std::pair("cap", cap_ - kBesideBudget), std::pair("floor", floor)})
      for (const char* hints : {"on", "off"}) {
        rows.push_back(capped(fmt::format("decode/{}/hints:{}", place, hints), budget, kPrompt));
        if (hints == std::string("off")) rows.back().run.more = {"--no-hints"};
        if (budget == floor) rows.back().run.answer_count = kAnswerAtFloor;
      }
    measure(rows);
    const double compute = rows.front().median(compute_seconds);
    for (const Row& row : rows) {
      nlohmann::ordered_json fields = fields_of(row);
      const double missed = fields.at("missed_bytes_per_token");
      const double bound = missed / roof_ + compute;
      fields["compute_seconds"] = compute;
      fields["bound_seconds"] = bound;
      fields["ratio"] = fields.at("decode_seconds_per_token").get<double>() / bound;
      record(row.name, fields);
    }
  }

  void prefill() {
    std::vector<Row> rows = {in_memory(kLongPrompt),
                             capped("prefill/cap", cap_ - kBesideBudget, kLongPrompt)};
    measure(rows);
    // With everything in memory each expert is read when it is first needed, and never again.
    const double distinct = rows.front().median(prefill_expert_bytes);
    for (const Row& row : rows) {
      nlohmann::ordered_json fields = fields_of(row);
      const double read = row.median(prefill_expert_bytes);
      fields["prompt_tokens"] = kLongPrompt;
      fields["expert_bytes_read"] = read;
      fields["amplification"] = read / distinct;
      fields["over_decode"] = fields.at("prefill_tokens_per_second").get<double>() *
                              fields.at("decode_seconds_per_token").get<double>();
      record(row.name, fields);
    }
  }

  void sweep() {
    const json plan = plan_of(model_, kPrompt + kAnswer);
    const uint64_t floor = plan.at("floor_bytes"), all = plan.at("planned_bytes");
    std::vector<Row> rows;
    for (size_t i = 0; i < kSweepBudgets; ++i)
      rows.push_back(capped(fmt::format("sweep:{}", i),
                            floor + (all - floor) * i / (kSweepBudgets - 1), kPrompt));
    rows.front().run.answer_count = kAnswerAtFloor;
    measure(rows);
    double best = 0;
    for (const Row& row : rows) {
      nlohmann::ordered_json fields = fields_of(row);
      const double rate = fields.at("decode_tokens_per_second");
      // Of the fastest with less memory; below 1, more memory is slower.
      fields["over_less_memory"] = best > 0 ? json(rate / best) : json();
      best = std::max(best, rate);
      record(row.name, fields);
    }
  }

  Row capped(const std::string& name, uint64_t budget, size_t prompt) const {
    return {.name = name,
            .run = {.model = model_,
                    .budget_bytes = budget,
                    .limit_bytes = budget + kBesideBudget,
                    .prompt_count = prompt,
                    .answer_count = kAnswer}};
  }
  Row in_memory(size_t prompt) const {
    const uint64_t all = plan_of(model_, prompt + kAnswer).at("planned_bytes");
    return {
        .name = fmt::format("prompt:{}/memory", prompt),
        .run = {
            .model = model_, .budget_bytes = all, .prompt_count = prompt, .answer_count = kAnswer}};
  }

  // Memory and hints change no token.
  static void check_tokens(const Row& expected, const Row& row) {
    const json& all = expected.results.front().report.at("ids");
    const json& ids = row.results.back().report.at("ids");
    if (std::equal(ids.begin(), ids.begin() + std::ptrdiff_t(std::min(ids.size(), all.size())),
                   all.begin()))
      return;
    fmt::print(stderr, "capped_bench: {} gives other tokens\n", row.name);
    std::exit(1);
  }

  // All rows by turns.
  void measure(std::vector<Row>& rows) {
    roof_ = 0;
    parts_.begin();
    for (size_t round = 0; round < parts_.rounds(); ++round)
      for (Row& row : rows) {
        const auto rate = memory::probe_disk(shards_, kProbeTime);
        if (rate) roof_ = std::max(roof_, rate->bytes_per_second);
        row.results.push_back(run_capped(row.run));
        const json& report = row.results.back().report;
        const json& own = report.at("counters").at("disk_roof_bytes_per_second");
        if (own.is_number()) roof_ = std::max(roof_, own.get<double>());
        check_tokens(rows.front(), row);
        fmt::print(stderr, "round {}: {:<24} {:7.2f} tok/s\n", round, row.name,
                   1 / seconds_per_token(report));
      }
    parts_.end();
  }

  void record(const std::string& what, nlohmann::ordered_json fields) {
    fields["disk_roof_bytes_per_second"] = roof_;
    fmt::print("{:<28} {:>6.0f} MB  {:>7.2f} tok/s  {:>8.2f} MB missed  hit {:.2f}", what,
               fields.at("budget_bytes").get<double>() / 1e6,
               fields.at("decode_tokens_per_second").get<double>(),
               fields.at("missed_bytes_per_token").get<double>() / 1e6,
               fields.at("hit_rate").get<double>());
    for (const char* more :
         {"ratio", "prefill_tokens_per_second", "amplification", "over_decode", "over_less_memory"})
      if (fields.contains(more) && fields.at(more).is_number())
        fmt::print("  {} {:.2f}", more, fields.at(more).get<double>());
    fmt::print("  peak {:.0f} MB\n", fields.at("peak_resident_bytes").get<double>() / 1e6);
    parts_.write(model_name(model_) + "/capped/" + what, fields);
  }

  std::string model_;
  uint64_t cap_;
  Parts parts_;
  std::vector<std::string> shards_;
  double roof_ = 0;  // of the part at hand
};

// "1500MB", "24GB".
uint64_t bytes_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return static_cast<uint64_t>(number * (std::string(end) == "GB" ? 1e9 : 1e6));
}

}  // namespace
}  // namespace deltafin::bench

int main(int count, char** arguments) {
  using namespace deltafin::bench;
  std::optional<Parts> parts = Parts::open(count, arguments);
  if (!parts) return 1;
  const char* const model = std::getenv("DELTAFIN_BENCH_MODEL");
  const std::string why_not =
      model == nullptr ? "DELTAFIN_BENCH_MODEL names no checkpoint" : why_not_capped();
  if (!why_not.empty()) {
    fmt::print("capped_bench: skipped: {}\n", why_not);
    return 0;
  }
  const char* const cap = std::getenv("DELTAFIN_BENCH_CAP");
  CappedBench bench(model, bytes_in(cap != nullptr ? cap : "1500MB"), std::move(*parts));
  bench.run();
  return 0;
}
