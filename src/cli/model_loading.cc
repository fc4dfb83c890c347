#include "cli/model_loading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/machine.h"
#include "checkpoint/config.h"
#include "checkpoint/survey.h"
#include "cli/messages.h"
#include "cli/model_location.h"
#include "cli/progress.h"
#include "cli/units.h"

namespace deltafin::cli {

namespace {

constexpr size_t kUnknownFieldsShown = 6;

}  // namespace

void EngineFlags::declare(CommandLine& line) {
  line.group("machine");
  machine.declare(line);
  line.flag(
      "--memory", "SIZE",
      "everything fits into SIZE: 24GB, 80% of what can be used, or auto, which leaves the machine "
      "some air; refused with the numbers when it cannot (default: auto; see deltafin plan)",
      budget_into(memory));
  line.flag("--expert-cache", "SIZE",
            "memory for experts, such as 2GB (10^9) or 512MiB (2^20) (default: what the plan for "
            "--memory "
            "gives them)",
            size_into(expert_cache_bytes));
  line.flag("--prefill-rows", "N",
            "tokens of the prompt that go through the layers together (default: what the plan for "
            "--memory has room for, at best all); the output has the same bits with each",
            integer_into(prefill_rows, 1, limits::kPositions));
  line.toggle("--no-hints",
              "read no expert before it is needed (default: those that the next layer's router "
              "would choose now, when the disk is idle and such advice was mostly right); the "
              "output has the same bits",
              no_hints);
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

void warn_of_unknown_fields(const checkpoint::ModelContract& contract) {
  const std::string warning = unknown_fields_warning(contract);
  if (!warning.empty()) warn(warning);
}

Result<engine::EngineOptions> engine_options(const EngineFlags& flags) {
  engine::EngineOptions options;
  const Machine machine;
  TRY(const MachineChoice choice, choose(flags.machine, machine.cpu(), std::getenv(kIsaVariable)));
  options.thread_count = choice.thread_count;
  options.kernels = choice.kernels;
  if (flags.no_hints) options.hints = memory::Hints::None;
  options.expert_cache_bytes = flags.expert_cache_bytes.value_or(options.expert_cache_bytes);
  return options;
}

Result<ModelPreparation> ModelPreparation::create(const io::Storage& storage,
                                                  const std::string& model,
                                                  const EngineFlags& flags) {
  ModelPreparation ready(storage);
  TRY(ready.directory_, find_model(storage, model));
  TRY(ready.contract_, read_contract(storage, ready.directory_));
  TRY(ready.options, engine_options(flags));
  TRY(ready.reader_, choose_reader(flags.machine, std::getenv(kReaderVariable)));
  return ready;
}

Result<const checkpoint::Checkpoint*> ModelPreparation::checkpoint() {
  if (!checkpoint_) {
    TRY(checkpoint_, checkpoint::Checkpoint::open(*storage_, directory_));
  }
  return &*checkpoint_;
}

Result<checkpoint::Checkpoint> ModelPreparation::take_checkpoint() {
  TRY_STATUS(checkpoint());
  return *std::exchange(checkpoint_, std::nullopt);
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::open(ModelPreparation& preparation,
                                                       const CancelToken& cancel,
                                                       const std::function<void(double)>& also) {
  std::unique_ptr<LoadedModel> model(new LoadedModel);
  TRY(model->reader_, cli::open(preparation.reader()));
  const std::chrono::nanoseconds start = model->clock_.now();
  ProgressMeter meter("loading", style_of_standard_error(), model->clock_, write_to_standard_error);
  const auto show = [&](const memory::TrunkProgress& progress) {
    if (progress.bytes_total == 0) return;
    const double fraction =
        static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_total);
    if (also) also(fraction);
    meter.update(fraction, fmt::format("{} of {}", human_bytes(progress.bytes_done),
                                       human_bytes(progress.bytes_total)));
  };
  TRY(checkpoint::Checkpoint checkpoint, preparation.take_checkpoint());
  const engine::EngineEnvironment environment{.storage = preparation.storage(),
                                              .reader = *model->reader_.reader,
                                              .clock = model->clock_,
                                              .pressure = &model->pressure_};
  TRY(model->engine_,
      engine::Engine::open(environment, std::move(checkpoint), preparation.options, show, cancel));
  model->load_time_ = model->clock_.now() - start;
  return model;
}

}  // namespace deltafin::cli
