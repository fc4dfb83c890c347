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

// How the disk is read, by the flags and the environment. Errors: Usage.
Result<ReaderChoice> reader_choice(const EngineFlags& flags);

// The flags with every default filled in, from the environment and the machine. Errors: Usage, for
// an instruction set that is not here, or too many threads.
Result<engine::EngineOptions> engine_options(const EngineFlags& flags);

// An engine and the world it lives in.
class LoadedModel {
 public:
  // Shows progress on standard error, and tells `also` the fraction that is done. Errors: BadModel,
  // Io, OverBudget, Cancelled.
  static Result<std::unique_ptr<LoadedModel>> open(const std::string& directory,
                                                   const engine::EngineOptions& options,
                                                   const ReaderChoice& reader,
                                                   const CancelToken& cancel,
                                                   const std::function<void(double)>& also = {});

  engine::Engine& engine() { return *engine_; }
  const Clock& clock() const { return clock_; }
  const io::OpenedReader& reader() const { return reader_; }
  std::chrono::nanoseconds load_time() const { return load_time_; }

 private:
  LoadedModel() = default;

  io::PosixStorage storage_;
  io::OpenedReader reader_;
  SystemClock clock_;
  SystemPressureGauge pressure_;
  std::chrono::nanoseconds load_time_{0};
  std::unique_ptr<engine::Engine> engine_;  // dies before what it lives on
};

}  // namespace deltafin::cli
