#include "checkpoint/surveyor.h"

#include <fmt/format.h>

#include <span>

#include "base/limits.h"
#include "checkpoint/config.h"
#include "checkpoint/download_traces.h"

namespace deltafin::checkpoint {
namespace {

constexpr const char* kConfigFile = "config.json";
constexpr size_t kNamesShown = 3;         // of the tensors that a layer lacks
constexpr size_t kShardNamesShown = 200;  // K3 has 96 shards: every missing one is named

std::string join_names(const std::vector<std::string>& names, size_t count) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  if (count > names.size()) text += fmt::format(" and {} more", count - names.size());
  return text;
}

}  // namespace

void Surveyor::refuse_path(const std::string& message) {
  problems_.add({.kind = ProblemKind::NotACheckpoint,
                 .message = message,
                 .advice = "expected a folder with config.json and *.safetensors files, as Hugging "
                           "Face repositories have them"});
}

bool Surveyor::look_at_folder() {
  const std::string& directory = survey_.directory_;
  if (!storage_.exists(directory)) {
    refuse_path("no such folder");
    return false;
  }
  if (!storage_.is_directory(directory)) {
    const Result<std::unique_ptr<io::File>> file = storage_.open(directory);
    char magic[4] = {};
    const bool is_gguf = file &&
                         io::read_exactly(**file, 0, std::as_writable_bytes(std::span(magic))) &&
                         std::string_view(magic, sizeof magic) == "GGUF";
    refuse_path(is_gguf ? "is a GGUF file, which is another format" : "is a file");
    return false;
  }
  Result<std::vector<io::DirectoryEntry>> entries = storage_.list(directory);
  if (!entries) {
    problems_.add({.kind = ProblemKind::UnreadableFile, .message = entries.error().what});
    return false;
  }
  entries_ = std::move(*entries);
  return true;
}

void Surveyor::look_for_unfinished_files() {
  survey_.unfinished_files_ = find_unfinished_files(storage_, survey_.directory_);
  const std::vector<std::string>& files = survey_.unfinished_files_;
  if (files.empty()) return;
  problems_.add(
      {.severity = Severity::Note,
       .kind = ProblemKind::UnfinishedDownload,
       .file = files.front(),
       .message = fmt::format("{} unfinished {} there: looks like an interrupted download",
                              files.size(), files.size() == 1 ? "file is" : "files are"),
       .advice = "let the download finish, or start it again to resume it"});
}

void Surveyor::read_config() {
  const bool listed = std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry.name == kConfigFile && !entry.is_directory;
  });
  if (!listed) return report_no_config();
  const std::string path = io::join_path(survey_.directory_, kConfigFile);
  const Result<std::string> text = io::read_text(storage_, path, limits::kConfigBytes);
  if (!text) {
    // The message names the path.
    problems_.add(
        {.kind = kind_of_read_error(storage_, survey_.directory_, kConfigFile, text.error()),
         .message = text.error().what});
    return;
  }
  if (is_pointer_file(*text)) {
    problems_.add({.kind = ProblemKind::PointerFile,
                   .file = kConfigFile,
                   .message = "is a Git-LFS pointer, not the file itself",
                   .advice = fmt::format("run `git lfs pull` in {}", survey_.directory_)});
    return;
  }
  Result<ModelContract> contract = parse_config(*text);
  if (!contract) {
    problems_.add(
        {.kind = ProblemKind::BadConfig, .file = kConfigFile, .message = contract.error().what});
    return;
  }
  survey_.contract_ = std::move(*contract);
  map_.emplace(*survey_.contract_);
}

void Surveyor::report_no_config() {
  std::string message = "has no config.json";
  for (const io::DirectoryEntry& entry : entries_) {
    if (entry.is_directory && entry.name == "snapshots") {
      message +=
          "; it is the cache folder of a repository: give the folder of one revision below "
          "snapshots/ instead";
    } else if (entry.name.ends_with(".gguf")) {
      message += fmt::format(" ({} is another format)", entry.name);
      break;
    }
  }
  refuse_path(message);
}

// A download that stopped leaves unfinished files, or lacks every shard from some point on.
bool Surveyor::looks_interrupted(uint32_t first_missing) const {
  const auto is_present = [](const Shard& shard) { return shard.state == ShardState::Present; };
  return !survey_.unfinished_files_.empty() ||
         std::none_of(shards_.shards.begin() + first_missing, shards_.shards.end(), is_present);
}

// "2 of 11 shards are missing: a, b"
std::string Surveyor::describe_missing(const std::vector<uint32_t>& missing,
                                       ShardState state) const {
  std::vector<std::string> names;
  for (const uint32_t shard : missing) {
    if (names.size() < kShardNamesShown) names.push_back(shards_.shards[shard].name);
  }
  const bool is_one = missing.size() == 1;
  const char* const what = state == ShardState::Absent ? (is_one ? "is missing" : "are missing")
                           : is_one ? "is a symbolic link to a file that does not exist"
                                    : "are symbolic links to files that do not exist";
  return fmt::format("{} of {} shards {}: {}", missing.size(), shards_.shards.size(), what,
                     join_names(names, missing.size()));
}

void Surveyor::report_missing_shards() {
  for (const ShardState state : {ShardState::Absent, ShardState::Dangling}) {
    for (const Severity severity : {Severity::Error, Severity::Note}) {
      std::vector<uint32_t> missing;
      for (uint32_t i = 0; i < shards_.shards.size(); ++i) {
        if (shards_.shards[i].state == state && severity_of(i) == severity) missing.push_back(i);
      }
      if (missing.empty()) continue;
      std::string message = describe_missing(missing, state);
      if (severity == Severity::Note) message += " (nothing that is used)";
      if (looks_interrupted(missing.front())) message += "; looks like an interrupted download";
      problems_.add({.severity = severity,
                     .kind = ProblemKind::MissingShard,
                     .message = std::move(message),
                     .advice = "resume the download, or copy the missing files into the folder"});
    }
  }
}

void Surveyor::report_missing_tensors() {
  if (!map_ || lost_without_index_ || shards_.shards.empty()) return;
  report_missing(map_->missing_globals(kNamesShown), std::nullopt);
  for (uint32_t layer = 0; layer < survey_.contract_->layers.size(); ++layer) {
    report_missing(map_->missing_in_layer(layer, kNamesShown), layer);
  }
}

void Surveyor::report_missing(const TensorMap::Missing& missing, std::optional<uint32_t> layer) {
  if (missing.count == 0) return;
  const std::string place = layer ? fmt::format("layer {}", *layer) : "the model";
  problems_.add(
      {.kind = ProblemKind::MissingTensor,
       .tensor = missing.count == 1 ? missing.names.front() : "",
       .layer = layer,
       .message = missing.count == 1
                      ? fmt::format("no shard holds it, but {} needs it by config.json", place)
                      : fmt::format("{} lacks {} tensors, which no shard holds: {}", place,
                                    missing.count, join_names(missing.names, missing.count)),
       .advice = "config.json and the shards must come from the same model and revision"});
}

void Surveyor::finish() {
  for (const auto& [part, tensors] : ignored_) survey_.ignored_.push_back(tensors);
  if (!map_) return;
  const ModelContract& contract = *survey_.contract_;
  const TensorMap::Found globals = map_->found_globals();
  survey_.globals_ = {.found = globals.count, .expected = tensor_count(contract.globals)};
  survey_.found_bytes_ = globals.bytes;
  for (uint32_t layer = 0; layer < contract.layers.size(); ++layer) {
    const TensorMap::Found found = map_->found_in_layer(layer);
    survey_.layers_.push_back(
        {.found = found.count, .expected = tensor_count(contract.layers[layer])});
    survey_.found_bytes_ += found.bytes;
  }
  survey_.tables_ = map_->take();
}

}  // namespace deltafin::checkpoint
