// --save-state and --load-state: a sequence that outlives the program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/cancel.h"
#include "base/result.h"
#include "checkpoint/contract.h"
#include "cli/command_line.h"
#include "cli/model_loading.h"
#include "cli/output_file.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "io/file.h"
#include "state/snapshot.h"

namespace deltafin::cli {

struct StateFlags {
  std::optional<std::string> save, load;

  // The flags must outlive the command line's parse().
  void declare(CommandLine& line);
  bool is_given() const { return save || load; }
};

// What is told of a state on disk.
struct StateReport {
  std::string file;
  state::SnapshotCounts counts;
  uint64_t bytes = 0;
};
nlohmann::ordered_json to_json(const std::optional<StateReport>& report);

// Whose states they are: looks into the checkpoint. Errors: BadModel, Io.
Result<state::SnapshotOwner> state_owner(ModelPreparation& model);

// A state to go on from, looked at before the weights are loaded. Errors: state::check_snapshot's;
// Usage, when `prompt_count` more tokens do not fit into the model's positions.
Result<StateReport> check_state(const io::Storage& storage, const std::string& path,
                                const state::SnapshotOwner& owner, uint64_t prompt_count);

// The sequence in the file. What waits in it is put in front of the prompt of `request`; where
// there is neither, the request gets the logits. Errors: state::read_snapshot's.
Result<engine::Sequence> load_state(const io::Storage& storage, const std::string& path,
                                    const state::SnapshotOwner& owner, const state::Layout& layout,
                                    const CancelToken& cancel, engine::GenerateRequest& request);

// Writes and publishes. Errors: Io; Usage when somebody made a file of that name meanwhile.
Result<StateReport> save_state(PublishedFile& file, const state::SnapshotOwner& owner,
                               const engine::Sequence& sequence, const engine::Continuation& next);

}  // namespace deltafin::cli
