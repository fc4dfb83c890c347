#include "checkpoint/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/limits.h"
#include "checkpoint/config.h"
#include "checkpoint/download_traces.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shard_set.h"
#include "checkpoint/tensor_map.h"

namespace deltafin::checkpoint {
namespace {

constexpr const char* kConfigFile = "config.json";
constexpr size_t kNamesShown = 3;         // of the tensors that a layer lacks
constexpr size_t kShardNamesShown = 200;  // K3 has 96 shards: every missing one is named
constexpr size_t kIgnoredPatterns = 32;   // beyond these, names are counted under "*"

std::string join_names(const std::vector<std::string>& names, size_t count) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  if (count > names.size()) text += fmt::format(" and {} more", count - names.size());
  return text;
}

std::string describe_shapes(const std::vector<std::vector<uint64_t>>& shapes) {
  std::string text;
  for (const std::vector<uint64_t>& shape : shapes) {
    text += (text.empty() ? "" : " or ") + describe_shape(shape);
  }
  return text;
}

// "vision_tower" of "vision_tower.blocks.0.weight".
std::string_view first_part(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

// One survey in the making: the steps of run(), in order.
class Surveyor {
 public:
  Surveyor(const io::Storage& storage, Survey& survey)
      : storage_(storage), survey_(survey), problems_(survey.problems_) {}

  void run() {
    if (!look_at_folder()) return;
    look_for_unfinished_files();
    read_config();
    shards_ = find_shards(storage_, survey_.directory_, entries_, problems_);
    for (uint32_t i = 0; i < shards_.shards.size(); ++i) look_at_shard(i);
    report_missing_shards();
    report_missing_tensors();
    finish();
  }

 private:
  // --- The folder ---
  bool look_at_folder();
  void refuse_path(const std::string& message);
  void look_for_unfinished_files();
  void read_config();
  void report_no_config();

  // --- One shard ---
  void look_at_shard(uint32_t shard);
  void place_tensors(uint32_t shard, const Header& header, uint64_t file_bytes);
  void place_tensor(const std::string& shard_name, const TensorEntry& tensor, const Header& header);
  void compare_with_index(uint32_t shard, const Header& header);
  void report_unlisted(uint32_t shard, const TensorEntry& tensor);
  void count_ignored(const TensorEntry& tensor);
  // A shard that is not there or cannot be read takes its tensors with it.
  void lose_shard(uint32_t shard);
  Severity severity_of(uint32_t shard) const;

  // --- The whole ---
  void report_missing_shards();
  bool looks_interrupted(const std::vector<uint32_t>& missing) const;
  void report_missing_tensors();
  void report_missing(const TensorMap::Missing& missing, std::optional<uint32_t> layer);
  void finish();

  Place place_of(std::string_view name) const {
    return map_ ? map_->roster().find(name) : Place{.kind = PlaceKind::Ignored};
  }
  static std::string again(const std::string& file) {
    return fmt::format("download {} again", file);
  }

  const io::Storage& storage_;
  Survey& survey_;
  ProblemList& problems_;
  std::vector<io::DirectoryEntry> entries_;
  ShardSet shards_;
  std::optional<TensorMap> map_;  // empty without a contract
  std::map<std::string, IgnoredTensors, std::less<>> ignored_;
  bool lost_without_index_ = false;  // a shard is lost, and nobody knows what was in it
};

// ------------------------------------------------------------------------------------ the folder
// --

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

// ------------------------------------------------------------------------------------- one shard
// --

void Surveyor::look_at_shard(uint32_t shard) {
  const std::string& name = shards_.shards[shard].name;
  survey_.shards_.push_back({.name = name});
  if (shards_.shards[shard].state != ShardState::Present) return lose_shard(shard);

  const auto refuse = [&](ProblemKind kind, std::string message, std::string advice) {
    const bool names_path = kind == ProblemKind::UnreadableFile;
    problems_.add({.severity = severity_of(shard),
                   .kind = kind,
                   .file = names_path ? "" : name,
                   .message = std::move(message),
                   .advice = std::move(advice)});
    lose_shard(shard);
  };
  Result<std::unique_ptr<io::File>> file = storage_.open(io::join_path(survey_.directory_, name));
  if (!file) return refuse(ProblemKind::UnreadableFile, file.error().what, "");
  const uint64_t file_bytes = (*file)->size();
  survey_.shards_.back().file_bytes = file_bytes;

  std::vector<std::byte> bytes(std::min<uint64_t>(file_bytes, kPointerFileBytes));
  if (const Status read = io::read_exactly(**file, 0, bytes); !read) {
    return refuse(ProblemKind::UnreadableFile, read.error().what, "");
  }
  if (is_pointer_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    return refuse(ProblemKind::PointerFile, "is a Git-LFS pointer, not the file itself",
                  fmt::format("run `git lfs pull` in {}", survey_.directory_));
  }
  const Result<uint64_t> data_begin = parse_data_begin(bytes, file_bytes);
  if (!data_begin) return refuse(ProblemKind::BadHeader, data_begin.error().what, again(name));
  bytes.resize(*data_begin);
  if (const Status read = io::read_exactly(**file, 0, bytes); !read) {
    return refuse(ProblemKind::UnreadableFile, read.error().what, "");
  }
  const Result<Header> header = parse_header(bytes, file_bytes);
  if (!header) return refuse(ProblemKind::BadHeader, header.error().what, again(name));

  survey_.shards_.back().is_readable = true;
  survey_.shards_.back().tensor_count = header->tensors.size();
  if (const Status size = check_file_size(*header, file_bytes); !size) {
    const bool is_cut = file_bytes - header->data_begin < header->data_size;
    problems_.add({.severity = severity_of(shard),
                   .kind = is_cut ? ProblemKind::CutFile : ProblemKind::BadHeader,
                   .file = name,
                   .message = size.error().what,
                   .advice = again(name)});
  }
  if (map_) map_->begin_file(std::move(*file), name);
  if (shards_.index) compare_with_index(shard, *header);
  place_tensors(shard, *header, file_bytes);
}

// Every tensor that lies whole in the file; what a cut file lacks is lost, and reported as that.
void Surveyor::place_tensors(uint32_t shard, const Header& header, uint64_t file_bytes) {
  const uint64_t held_bytes = file_bytes - header.data_begin;
  for (const TensorEntry& tensor : header.tensors) {
    if (tensor.end <= held_bytes) {
      place_tensor(shards_.shards[shard].name, tensor, header);
    } else if (const Place place = place_of(tensor.name); place.is_needed()) {
      map_->mark_lost(place);
    }
  }
}

void Surveyor::place_tensor(const std::string& shard_name, const TensorEntry& tensor,
                            const Header& header) {
  const Place place = place_of(tensor.name);
  if (place.kind == PlaceKind::Ignored) return count_ignored(tensor);
  Problem problem{.file = shard_name, .tensor = tensor.name, .layer = place.layer_if_any()};
  if (place.kind == PlaceKind::Unexpected) {
    problem.kind = ProblemKind::UnexpectedTensor;
    problem.message = "config.json describes a model without this tensor";
    problem.advice = "config.json and the shards must come from the same model and revision";
    problems_.add(std::move(problem));
    return;
  }
  const TensorMap::Verdict verdict = map_->place(place, tensor, header.data_begin);
  switch (verdict) {
    case TensorMap::Verdict::Placed:
      return;
    case TensorMap::Verdict::WrongDType:
      problem.kind = ProblemKind::WrongTensor;
      problem.message = fmt::format("dtype is {}, expected {}", name_of(tensor.dtype),
                                    map_->roster().is_u8(place) ? "U8" : "BF16 or F32");
      break;
    case TensorMap::Verdict::WrongShape:
      problem.kind = ProblemKind::WrongTensor;
      problem.message =
          fmt::format("shape is {}, expected {} by config.json", describe_shape(tensor.shape),
                      describe_shapes(map_->roster().shapes(place)));
      problem.advice = "config.json and the shards must come from the same model and revision";
      break;
    case TensorMap::Verdict::Twice:
      problem.kind = ProblemKind::DuplicateTensor;
      problem.message = fmt::format("is in {} too", map_->file_at(place));
      problem.advice =
          fmt::format("keep one set of shards in the folder, or add its {}", kIndexFile);
      break;
  }
  map_->mark_lost(place);
  problems_.add(std::move(problem));
}

void Surveyor::count_ignored(const TensorEntry& tensor) {
  if (!survey_.contract_) return;  // then nothing is known to be outside
  const std::string_view part = first_part(tensor.name);
  auto found = ignored_.find(part);
  if (found == ignored_.end()) {
    const bool has_room = ignored_.size() < kIgnoredPatterns;
    const std::string key = has_room ? std::string(part) : "";
    const std::string pattern = has_room ? key + ".*" : "*";
    found = ignored_.try_emplace(key, IgnoredTensors{.pattern = pattern}).first;
  }
  ++found->second.count;
  found->second.bytes += tensor.end - tensor.begin;
}

// Both are sorted by name, so that one walk finds what only one of them has.
void Surveyor::compare_with_index(uint32_t shard, const Header& header) {
  std::vector<const TensorEntry*> held;
  for (const TensorEntry& tensor : header.tensors) held.push_back(&tensor);
  std::sort(held.begin(), held.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });

  auto next = held.begin();
  for (const Index::Entry& entry : shards_.index->entries_of(shard)) {
    const std::string_view listed = shards_.index->name(entry);
    for (; next != held.end() && (*next)->name < listed; ++next) report_unlisted(shard, **next);
    if (next != held.end() && (*next)->name == listed) {
      ++next;
      continue;
    }
    const Place place = place_of(listed);
    if (place.is_needed()) map_->mark_lost(place);
    problems_.add({.severity = place.kind == PlaceKind::Ignored ? Severity::Note : Severity::Error,
                   .kind = ProblemKind::IndexMismatch,
                   .file = shards_.shards[shard].name,
                   .tensor = std::string(listed),
                   .layer = place.layer_if_any(),
                   .message = "the index puts it into this shard, but the shard does not hold it",
                   .advice = "download the index and this shard again, from one revision"});
  }
  for (; next != held.end(); ++next) report_unlisted(shard, **next);
}

void Surveyor::report_unlisted(uint32_t shard, const TensorEntry& tensor) {
  const Place place = place_of(tensor.name);
  std::string message = "the shard holds it, but the index does not list it";
  if (problems_.keeps_another(ProblemKind::IndexMismatch)) {  // the search is not cheap
    if (const std::optional<uint32_t> other = shards_.index->shard_of(tensor.name)) {
      message = fmt::format("the shard holds it, but the index puts it into {}",
                            shards_.shards[*other].name);
    }
  }
  problems_.add({.severity = place.kind == PlaceKind::Ignored ? Severity::Note : Severity::Error,
                 .kind = ProblemKind::IndexMismatch,
                 .file = shards_.shards[shard].name,
                 .tensor = tensor.name,
                 .layer = place.layer_if_any(),
                 .message = std::move(message),
                 .advice = "download the index and this shard again, from one revision"});
}

void Surveyor::lose_shard(uint32_t shard) {
  if (!shards_.index) {
    lost_without_index_ = true;
    return;
  }
  for (const Index::Entry& entry : shards_.index->entries_of(shard)) {
    const Place place = place_of(shards_.index->name(entry));
    if (place.is_needed()) map_->mark_lost(place);
  }
}

// A shard that holds nothing but ignored tensors may be missing or damaged.
Severity Surveyor::severity_of(uint32_t shard) const {
  if (!shards_.index || !map_) return Severity::Error;
  for (const Index::Entry& entry : shards_.index->entries_of(shard)) {
    if (place_of(shards_.index->name(entry)).kind != PlaceKind::Ignored) return Severity::Error;
  }
  return Severity::Note;
}

// ------------------------------------------------------------------------------------- the whole
// --

// A download that stopped leaves unfinished files, or lacks the end of the list of shards.
bool Surveyor::looks_interrupted(const std::vector<uint32_t>& missing) const {
  const size_t first_of_tail = shards_.shards.size() - missing.size();
  return !survey_.unfinished_files_.empty() || missing.front() == first_of_tail;
}

void Surveyor::report_missing_shards() {
  for (const ShardState state : {ShardState::Absent, ShardState::Dangling}) {
    for (const Severity severity : {Severity::Error, Severity::Note}) {
      std::vector<uint32_t> missing;
      std::vector<std::string> names;
      for (uint32_t i = 0; i < shards_.shards.size(); ++i) {
        if (shards_.shards[i].state != state || severity_of(i) != severity) continue;
        missing.push_back(i);
        if (names.size() < kShardNamesShown) names.push_back(shards_.shards[i].name);
      }
      if (missing.empty()) continue;
      std::string message = fmt::format(
          "{} of {} shards {} {}{}: {}", missing.size(), shards_.shards.size(),
          missing.size() == 1 ? "is" : "are",
          state == ShardState::Absent ? "missing" : "a symbolic link to a file that does not exist",
          severity == Severity::Note ? " (only tensors that are not used)" : "",
          join_names(names, missing.size()));
      if (looks_interrupted(missing)) message += "; looks like an interrupted download";
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
  survey_.globals_ = {.found = globals.count, .expected = contract.globals.size()};
  survey_.found_bytes_ = globals.bytes;
  for (uint32_t layer = 0; layer < contract.layers.size(); ++layer) {
    const TensorMap::Found found = map_->found_in_layer(layer);
    survey_.layers_.push_back(
        {.found = found.count, .expected = tensor_count(contract.layers[layer])});
    survey_.found_bytes_ += found.bytes;
  }
  survey_.tables_ = map_->take();
}

Survey Survey::of(const io::Storage& storage, const std::string& directory) {
  Survey survey;
  survey.directory_ = directory;
  // The surveyor keeps references into the survey, so it must be gone before the survey moves.
  Surveyor(storage, survey).run();
  return survey;
}

Result<Checkpoint> Survey::into_checkpoint() && {
  if (!is_usable()) return std::unexpected(problems_.to_error(directory_));
  // Nothing may be missing without a problem that says so.
  CHECK(contract_ && globals_.is_complete());
  CHECK(std::ranges::all_of(layers_, &Completeness::is_complete));
  return Checkpoint(std::move(directory_), std::move(*contract_), std::move(tables_));
}

Result<Checkpoint> Checkpoint::open(const io::Storage& storage, const std::string& directory) {
  return Survey::of(storage, directory).into_checkpoint();
}

}  // namespace deltafin::checkpoint
