#include "cli/plan_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/machine.h"
#include "checkpoint/config.h"
#include "checkpoint/survey.h"
#include "cli/command_line.h"
#include "cli/events.h"
#include "cli/machine_flags.h"
#include "cli/memory_planning.h"
#include "cli/messages.h"
#include "cli/model_location.h"
#include "cli/plan_report.h"
#include "engine/footprint.h"
#include "memory/probe.h"

namespace deltafin::cli {

namespace {

using std::chrono::milliseconds;

constexpr uint64_t kContext = 8192;
constexpr uint64_t kPrompts[] = {100, 1000, 8000};

// Five seconds in all, with what mapping memory and opening shards takes.
constexpr milliseconds kDiskProbe{2000}, kMemoryProbe{1200}, kArithmeticProbe{300};

struct PlanFlags {
  std::optional<std::string> model, config;
  std::optional<memory::BudgetRule> memory;
  std::optional<uint64_t> context, requests;
  std::optional<double> disk_rate, ram_rate, operation_rate;
  MachineFlags machine;
  bool json = false;

  void declare(CommandLine& line);
  Status check() const;
};

void PlanFlags::declare(CommandLine& line) {
  line.argument(
      "MODEL",
      "a checkpoint directory, complete or not, or demo for the bundled model (./demo for "
      "a folder)",
      model);
  line.group("");
  line.flag("--config", "FILE",
            "plan for one config.json instead: before any download, or for another machine",
            text_into(config));
  line.toggle("--json", "print one JSON object", json);
  line.group("what for");
  line.flag(
      "--memory", "SIZE",
      "the budget: 24GB (10^9), 512MiB (2^20), 80% of what this process may use, or auto: all "
      "of that but some headroom (default: auto)",
      budget_into(memory));
  line.flag("--context", "N",
            fmt::format("positions of a sequence, prompt and answer (default: {}, or what the "
                        "model declares)",
                        kContext),
            integer_into(context, 1, limits::kPositions));
  line.flag("--requests", "N", "sequences at a time (default: 1)",
            integer_into(requests, 1, limits::kRequests));
  line.group("machine; what is not given is measured, in at most five seconds");
  line.flag("--disk-gbps", "X", "GB a second that the disk reads", rate_into(disk_rate));
  line.flag("--ram-gbps", "X", "GB a second that all threads read from memory",
            rate_into(ram_rate));
  line.flag("--gflops", "X",
            "billion multiplications and additions a second in prefill (default: measured, unless "
            "--ram-gbps is given)",
            rate_into(operation_rate));
  machine.declare(line);
  line.example("deltafin plan ~/models/qwen3.5-122b --memory 24GB", "on this machine");
  line.example(
      "deltafin plan --config config.json --memory 128GB --disk-gbps 7 --ram-gbps 80 --json",
      "on another one, before any download");
}

Status PlanFlags::check() const {
  if (!model && !config)
    return fail(ErrorCode::Usage,
                "plan needs a MODEL\n  give a checkpoint directory, demo, or --config FILE");
  if (model && config)
    return fail(ErrorCode::Usage,
                "plan looks at a MODEL or at a --config FILE, not at both\n  drop one of them");
  return {};
}

// A model, as far as it is there.
struct Subject {
  std::string place;
  checkpoint::ModelContract contract;
  memory::ModelSizes sizes;
  std::vector<std::string> shards;  // paths
  std::vector<std::string> notes;
};

Result<Subject> subject_of_config(const std::string& path) {
  const io::PosixStorage storage;
  Subject subject{.place = path, .contract = {}, .sizes = {}, .shards = {}, .notes = {}};
  TRY(subject.contract, checkpoint::load_config(storage, path));
  subject.sizes = engine::footprint_of(subject.contract);
  return subject;
}

Result<Subject> subject_of_model(const std::string& model) {
  const io::PosixStorage storage;
  TRY(const std::string directory, find_model(storage, model));
  checkpoint::Survey survey = checkpoint::Survey::of(storage, directory);
  if (!survey.contract()) return std::unexpected(survey.problems().to_error(directory));
  Subject subject{.place = directory,
                  .contract = *survey.contract(),
                  .sizes = engine::footprint_of(*survey.contract()),
                  .shards = {},
                  .notes = {}};
  for (const checkpoint::ShardSummary& shard : survey.shards())
    if (shard.is_readable) subject.shards.push_back(io::join_path(directory, shard.name));
  if (!survey.is_usable()) {
    subject.notes.push_back(
        fmt::format("the checkpoint is not complete, so sizes are those of its config.json; see: "
                    "deltafin inspect {}",
                    model));
    return subject;
  }
  TRY(const checkpoint::Checkpoint checkpoint, std::move(survey).into_checkpoint());
  subject.sizes = engine::footprint_of(checkpoint);
  return subject;
}

Result<memory::PlanRequest> request_for(const PlanFlags& flags, const Subject& subject,
                                        uint64_t budget_bytes) {
  const uint64_t most = std::max<uint64_t>(subject.contract.max_positions, 1);
  if (flags.context && *flags.context > most)
    return fail(ErrorCode::Usage,
                fmt::format("--context: found {}, but the model declares {} positions\n  give at "
                            "most {}",
                            *flags.context, most, most));
  const uint64_t context = flags.context.value_or(std::min(kContext, most));
  return memory::PlanRequest{.budget_bytes = budget_bytes,
                             .context = context,
                             .requests = flags.requests.value_or(1),
                             .prompt_rows = context};
}

// The format that most of a pass's arithmetic is done in.
numerics::WeightFormat format_of(const checkpoint::ModelContract& contract) {
  for (const checkpoint::LayerContract& layer : contract.layers)
    if (layer.experts && layer.experts->format == checkpoint::ExpertFormat::Mxfp4)
      return numerics::WeightFormat::Mxfp4;
  return numerics::WeightFormat::Bf16;
}

void find_disk_rate(const PlanFlags& flags, const Subject& subject, PlanReport& report) {
  if (flags.disk_rate) {
    report.disk = {flags.disk_rate, "given"};
  } else if (const std::optional<memory::DiskRate> rate =
                 memory::probe_disk(subject.shards, kDiskProbe)) {
    report.disk = {rate->bytes_per_second,
                   rate->is_direct ? "measured, direct reads" : "measured, through the page cache"};
    if (!rate->is_direct)
      report.notes.emplace_back(
          "this file system refuses direct reads, so the rate of the disk may be that of a cache");
  } else {
    report.notes.emplace_back(
        "there is no shard to read, so nothing is known about the disk; give --disk-gbps for "
        "times");
  }
}

Status find_machine_rates(const PlanFlags& flags, const Subject& subject, PlanReport& report) {
  TRY(const MachineChoice choice,
      choose(flags.machine, Machine().cpu(), std::getenv(kIsaVariable)));
  if (flags.ram_rate) report.memory = {flags.ram_rate, "given"};
  if (flags.operation_rate) report.arithmetic = {flags.operation_rate, "given"};
  // Whoever gives the memory's rate means another machine, whose arithmetic we cannot measure.
  if (!flags.ram_rate) {
    ThreadTeam team(choice.thread_count);
    report.memory = {memory::probe_memory(team, kMemoryProbe), "measured"};
    if (!report.memory.per_second)
      report.notes.emplace_back(
          "there is no memory to measure its rate; give --ram-gbps for times");
    if (!flags.operation_rate)
      report.arithmetic = {memory::probe_arithmetic(team, *choice.kernels,
                                                    format_of(subject.contract), kArithmeticProbe),
                           "measured"};
  }
  if (!report.arithmetic.per_second)
    report.notes.emplace_back(
        "times to the first token do not count arithmetic; give --gflops for that");
  return {};
}

Result<PlanReport> make_report(const PlanFlags& flags, const CancelToken& cancel) {
  TRY(Subject subject,
      flags.config ? subject_of_config(*flags.config) : subject_of_model(*flags.model));
  PlanReport report;
  report.place = subject.place;
  report.architecture = subject.contract.architecture;
  report.sizes = subject.sizes;
  report.notes = subject.notes;
  const MemoryShare share = Machine().memory();
  TRY(report.budget, find_budget(flags.memory.value_or(memory::AutoBudget{}), share));
  TRY(report.request, request_for(flags, subject, report.budget.bytes));
  TRY(report.plan, make_plan(report.sizes, report.request));
  if (!flags.config) {
    const std::string warning = budget_warning(report.budget, share);
    if (!warning.empty()) report.notes.push_back(warning);
  }

  TRY_STATUS(find_machine_rates(flags, subject, report));
  TRY_STATUS(cancel.check());
  find_disk_rate(flags, subject, report);
  TRY_STATUS(cancel.check());
  report.decode = forecast_decode(report.sizes, report.plan, report.request, report.rates());
  for (const uint64_t rows : kPrompts)
    if (rows <= report.request.context)
      report.prefills.push_back(forecast_prefill(report.sizes, report.plan, rows, report.rates()));
  return report;
}

}  // namespace

Result<int> plan_command(const std::vector<std::string>& arguments, CancelToken& cancel) {
  PlanFlags flags;
  CommandLine line = {
      "plan (MODEL | --config FILE) [options]",
      "What would go where in memory under a budget, what a token would read from disk, and how "
      "fast that would be on this machine or another one. Loads no weights. Exit status 4 when the "
      "budget is too small, with the smallest that is not."};
  flags.declare(line);
  TRY(const CommandLine::Parsed parsed, line.parse(arguments));
  if (parsed == CommandLine::Parsed::Help) return print(line.help());
  TRY_STATUS(flags.check());
  TRY(const PlanReport report, make_report(flags, cancel));
  return print(flags.json ? to_document(to_json(report)) : to_text(report));
}

}  // namespace deltafin::cli
