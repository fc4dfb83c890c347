// From MODEL and the flags to an engine that is ready to run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/contract.h"
#include "cli/command_line.h"
#include "cli/machine_flags.h"
#include "engine/engine.h"
#include "io/file.h"
#include "io/reader.h"
#include "memory/budget.h"

namespace deltafin::cli {

struct EngineFlags {
  MachineFlags machine;
  std::optional<memory::BudgetRule> memory;
  std::optional<uint64_t> expert_cache_bytes, prefill_rows;
  bool no_hints = false;

  // The flags must outlive the command line's parse().
  void declare(CommandLine& line);
};

// The contract of the model in `directory`, from its config.json alone. Errors: BadModel, Io; those
// of a whole survey where that can say more than the config.
Result<checkpoint::ModelContract> read_contract(const io::Storage& storage,
                                                const std::string& directory);

// One line about config fields that we do not know; empty when there are none.
std::string unknown_fields_warning(const checkpoint::ModelContract& contract);
// Says so, where there are any.
void warn_of_unknown_fields(const checkpoint::ModelContract& contract);

// The flags with every default filled in, from the environment and the machine. Errors: Usage, for
// an instruction set that is not here, or too many threads.
Result<engine::EngineOptions> engine_options(const EngineFlags& flags);

// What is known of a model and of the engine for it before any weight is loaded.
class ModelPreparation {
 public:
  // `model` as on the command line. `storage` must outlive this and the engine. Errors: those of
  // the functions above and of find_model(); Usage, for a way to read that is not here.
  static Result<ModelPreparation> create(const io::Storage& storage, const std::string& model,
                                         const EngineFlags& flags);

  const io::Storage& storage() const { return *storage_; }
  const std::string& directory() const { return directory_; }
  const checkpoint::ModelContract& contract() const { return contract_; }
  const ReaderChoice& reader() const { return reader_; }

  // The plan for the memory, the owner of states and the engine need a whole checkpoint. It is
  // surveyed once, at the first call. Errors: BadModel, when it is not complete; Io.
  Result<const checkpoint::Checkpoint*> checkpoint();
  // The same, for the engine; the last call.
  Result<checkpoint::Checkpoint> take_checkpoint();

  engine::EngineOptions options;

 private:
  explicit ModelPreparation(const io::Storage& storage) : storage_(&storage) {}

  const io::Storage* storage_;
  std::string directory_;
  checkpoint::ModelContract contract_;
  ReaderChoice reader_;
  std::optional<checkpoint::Checkpoint> checkpoint_;
};

// An engine and the world it lives in.
class LoadedModel {
 public:
  // Shows progress on standard error, and tells `also` the fraction that is done. Errors: BadModel,
  // Io, OverBudget, Cancelled.
  static Result<std::unique_ptr<LoadedModel>> open(ModelPreparation& preparation,
                                                   const CancelToken& cancel,
                                                   const std::function<void(double)>& also = {});

  engine::Engine& engine() { return *engine_; }
  const Clock& clock() const { return clock_; }
  const io::OpenedReader& reader() const { return reader_; }
  std::chrono::nanoseconds load_time() const { return load_time_; }

 private:
  LoadedModel() = default;

  io::OpenedReader reader_;
  SystemClock clock_;
  SystemPressureGauge pressure_;
  std::chrono::nanoseconds load_time_{0};
  std::unique_ptr<engine::Engine> engine_;  // dies before what it lives on
};

}  // namespace deltafin::cli
