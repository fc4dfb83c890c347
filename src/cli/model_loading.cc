#include "cli/model_loading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/limits.h"
#include "base/thread_team.h"
#include "checkpoint/config.h"
#include "checkpoint/inventory.h"
#include "checkpoint/survey.h"
#include "cli/progress.h"
#include "cli/units.h"
#include "memory/expert_layout.h"
#include "numerics/kernels.h"

namespace deltafin::cli {

namespace {

constexpr uint64_t kExpertCacheLeast = 64ull << 20;
constexpr uint64_t kExpertCacheShare = 4;  // of the memory that is available: one part in so many
constexpr size_t kUnknownFieldsShown = 6;

// Two or three times too many threads are merely slow, which a test may want. 256 on two processors
// have been seen to take a machine away from everybody, for minutes.
constexpr uint64_t kThreadsPerProcessor = 4;

// What all routed experts take in the cache, which keeps every part of an expert aligned.
uint64_t all_experts_bytes(const checkpoint::ModelContract& contract) {
  uint64_t bytes = checkpoint::take_inventory(contract).routed_bytes;
  for (const checkpoint::LayerContract& layer : contract.layers) {
    if (!layer.experts) continue;
    bytes += uint64_t{layer.experts->expert_count} * (checkpoint::kExpertPartCount + 1) *
             memory::kExtentAlignment;
  }
  return bytes;
}

std::optional<uint64_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return parse_available_memory(text);
}

// Processors that this process may run on, hyper-threads included.
uint64_t processor_count() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return static_cast<uint64_t>(
        std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));  // more than the set has places
  return static_cast<uint64_t>(CPU_COUNT(&allowed));
}

Result<const numerics::Kernels*> find_isa(const std::string& name) {
  if (const numerics::Kernels* kernels = numerics::find_kernels(name)) return kernels;
  std::vector<std::string> names;
  for (const numerics::Kernels& kernels : numerics::kernel_variants())
    names.push_back(kernels.name);
  return fail(ErrorCode::Usage, fmt::format("--isa: found \"{}\", expected one that this processor "
                                            "has: {}",
                                            name, fmt::join(names, ", ")));
}

}  // namespace

void EngineFlags::declare(CommandLine& line) {
  line.group("machine");
  line.flag("--threads", "N", "compute threads (default: the physical cores this process may use)",
            integer_into(threads, 1, limits::kThreads));
  line.flag(
      "--isa", "NAME",
      "instruction set: baseline, avx2 or avx512 (default: the best here); the output has the "
      "same bits with each",
      text_into(isa));
  line.flag(
      "--expert-cache", "SIZE",
      "memory for experts, such as 2GB (10^9) or 512MiB (2^20) (default: all experts, at most a "
      "quarter of the available memory, at least 64MiB)",
      size_into(expert_cache_bytes));
  line.flag("--prefill-rows", "N",
            "tokens of the prompt that go through the layers together (default: what 1 GiB of "
            "activations allows); the output has the same bits with each",
            integer_into(prefill_rows, 1, limits::kPositions));
}

Result<checkpoint::ModelContract> read_contract(const io::Storage& storage,
                                                const std::string& directory) {
  Result<checkpoint::ModelContract> contract =
      checkpoint::load_config(storage, io::join_path(directory, "config.json"));
  if (contract) return contract;
  // A survey also knows what lies there instead: a file, another format, a cache folder.
  const checkpoint::Survey survey = checkpoint::Survey::of(storage, directory);
  if (!survey.is_usable()) return std::unexpected(survey.problems().to_error(directory));
  return contract;
}

std::string unknown_fields_warning(const checkpoint::ModelContract& contract) {
  const std::vector<std::string>& fields = contract.unknown_fields;
  if (fields.empty()) return "";
  const size_t shown = std::min(fields.size(), kUnknownFieldsShown);
  std::string text =
      fmt::format("config.json has {} that {} unknown here and ignored: {}",
                  fields.size() == 1 ? "a field" : fmt::format("{} fields", fields.size()),
                  fields.size() == 1 ? "is" : "are",
                  fmt::join(fields.begin(), fields.begin() + static_cast<ptrdiff_t>(shown), ", "));
  if (fields.size() > shown) text += fmt::format(" and {} more", fields.size() - shown);
  return text;
}

std::optional<uint64_t> parse_available_memory(std::string_view meminfo) {
  constexpr std::string_view kName = "MemAvailable:";
  const size_t at = meminfo.find(kName);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = meminfo.substr(at + kName.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  uint64_t kib = 0;
  const std::from_chars_result result =
      std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  if (result.ec != std::errc() || kib > UINT64_MAX / 1024) return std::nullopt;
  return kib * 1024;
}

uint64_t default_expert_cache(const checkpoint::ModelContract& contract,
                              std::optional<uint64_t> available_bytes) {
  const uint64_t share = available_bytes.value_or(0) / kExpertCacheShare;
  return std::max(std::min(all_experts_bytes(contract), share), kExpertCacheLeast);
}

Status check_thread_count(uint64_t thread_count, uint64_t processors) {
  if (thread_count <= processors * kThreadsPerProcessor) return {};
  return fail(
      ErrorCode::Usage,
      fmt::format("--threads: found {}, expected at most {}: there {} {} here, and more threads "
                  "than that only wait for each other",
                  thread_count, processors * kThreadsPerProcessor, processors == 1 ? "is" : "are",
                  processors == 1 ? "one processor" : fmt::format("{} processors", processors)));
}

Result<engine::EngineOptions> engine_options(const EngineFlags& flags,
                                             const checkpoint::ModelContract& contract) {
  engine::EngineOptions options;
  TRY_STATUS(check_thread_count(flags.threads.value_or(1), processor_count()));
  options.thread_count = flags.threads.value_or(std::min(usable_core_count(), limits::kThreads));
  if (flags.isa) {
    TRY(options.kernels, find_isa(*flags.isa));
  }
  options.expert_cache_bytes =
      flags.expert_cache_bytes.value_or(default_expert_cache(contract, available_memory()));
  return options;
}

LoadedModel::LoadedModel() : reader_(io::make_thread_reader({})) {}

Result<std::unique_ptr<LoadedModel>> LoadedModel::open(const std::string& directory,
                                                       const engine::EngineOptions& options,
                                                       const CancelToken& cancel) {
  std::unique_ptr<LoadedModel> model(new LoadedModel);
  const std::chrono::nanoseconds start = model->clock_.now();
  ProgressMeter meter("loading", style_of_standard_error(), model->clock_, write_to_standard_error);
  const auto show = [&](const memory::TrunkProgress& progress) {
    if (progress.bytes_total == 0) return;
    meter.update(
        static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_total),
        fmt::format("{} of {}", human_bytes(progress.bytes_done),
                    human_bytes(progress.bytes_total)));
  };
  const engine::EngineEnvironment environment{
      .storage = model->storage_, .reader = *model->reader_, .clock = model->clock_};
  TRY(model->engine_, engine::Engine::open(environment, directory, options, show, cancel));
  model->load_time_ = model->clock_.now() - start;
  return model;
}

}  // namespace deltafin::cli
