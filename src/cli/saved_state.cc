#include "cli/saved_state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "checkpoint/identity.h"
#include "numerics/kernels.h"

namespace deltafin::cli {

namespace {

template <class T>
Result<T> of_load_state(Result<T> result) {
  if (!result) return std::unexpected(std::move(result).error().within("--load-state"));
  return result;
}

}  // namespace

void StateFlags::declare(CommandLine& line) {
  line.group("state");
  line.flag("--save-state", "FILE",
            "write what the model has read and generated to FILE, also after Ctrl-C",
            text_into(save));
  line.flag("--load-state", "FILE",
            "go on from such a file: the prompt is appended; without one the text is continued",
            text_into(load));
}

nlohmann::ordered_json to_json(const std::optional<StateReport>& report) {
  if (!report) return nullptr;
  return {{"file", report->file},
          {"tokens", report->counts.tokens},
          {"waiting", report->counts.waiting},
          {"bytes", report->bytes}};
}

Result<state::SnapshotOwner> state_owner(ModelPreparation& model) {
  TRY(const checkpoint::Checkpoint* const checkpoint, model.checkpoint());
  TRY(const checkpoint::Identity identity, checkpoint::weak_identity(model.storage(), *checkpoint));
  return state::SnapshotOwner{.arithmetic = std::string(numerics::kArithmetic),
                              .identity = identity,
                              .vocab_size = checkpoint->contract().vocab_size(),
                              .max_positions = checkpoint->contract().max_positions};
}

Result<StateReport> check_state(const io::Storage& storage, const std::string& path,
                                const state::SnapshotOwner& owner, uint64_t prompt_count) {
  TRY(const std::unique_ptr<io::File> file, of_load_state(storage.open(path)));
  TRY(const state::SnapshotCounts counts, of_load_state(state::check_snapshot(*file, owner)));
  const uint64_t loaded = counts.tokens + counts.waiting;
  if (loaded + prompt_count > owner.max_positions)
    return fail(ErrorCode::Usage,
                fmt::format("--load-state: the {} tokens of {} and {} of the prompt are more than "
                            "the {} positions of the model",
                            loaded, path, prompt_count, owner.max_positions));
  return StateReport{.file = path, .counts = counts, .bytes = file->size()};
}

Result<engine::Sequence> load_state(const io::Storage& storage, const std::string& path,
                                    const state::SnapshotOwner& owner, const state::Layout& layout,
                                    const CancelToken& cancel, engine::GenerateRequest& request) {
  TRY(const std::unique_ptr<io::File> file, of_load_state(storage.open(path)));
  TRY(state::Snapshot snapshot, of_load_state(state::read_snapshot(*file, owner, layout, cancel)));
  request.prompt.insert(request.prompt.begin(), snapshot.waiting.begin(), snapshot.waiting.end());
  if (request.prompt.empty()) request.logits = std::move(snapshot.logits);
  return engine::Sequence(std::move(snapshot.tokens), std::move(snapshot.state));
}

Result<StateReport> save_state(PublishedFile& file, const state::SnapshotOwner& owner,
                               const engine::Sequence& sequence, const engine::Continuation& next) {
  StateReport report{.file = file.path(),
                     .counts = {.tokens = sequence.position_count(),
                                .waiting = next.waiting.size(),
                                .logits = next.logits.size()}};
  Status status = state::write_snapshot(owner,
                                        {.state = sequence.state(),
                                         .tokens = sequence.tokens(),
                                         .waiting = next.waiting,
                                         .logits = next.logits},
                                        [&](std::span<const std::byte> bytes) {
                                          report.bytes += bytes.size();
                                          return file.append(bytes);
                                        });
  if (status) status = file.publish();
  if (!status) return std::unexpected(std::move(status).error());
  return report;
}

}  // namespace deltafin::cli
