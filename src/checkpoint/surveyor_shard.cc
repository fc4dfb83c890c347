// The part of a survey that looks at one shard.
#include <fmt/format.h>

#include "checkpoint/download_traces.h"
#include "checkpoint/surveyor.h"

namespace deltafin::checkpoint {
namespace {

constexpr size_t kIgnoredPatterns = 32;  // beyond these, names are counted under "*"

std::string describe_shapes(const std::vector<std::vector<uint64_t>>& shapes) {
  std::string text;
  for (const std::vector<uint64_t>& shape : shapes) {
    text += (text.empty() ? "" : " or ") + describe_shape(shape);
  }
  return text;
}

// "vision_tower." of "vision_tower.blocks.0.weight", or the beginning by which it is ignored.
std::string_view beginning(const TensorNames& names, std::string_view name) {
  for (const std::string& ignored : names.ignored)
    if (name.starts_with(ignored)) return ignored;
  const size_t dot = name.find('.');
  return dot == name.npos ? name : name.substr(0, dot + 1);
}

std::string download_again(const std::string& file) {
  return fmt::format("download {} again", file);
}

}  // namespace

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
  if (!data_begin)
    return refuse(ProblemKind::BadHeader, data_begin.error().what, download_again(name));
  bytes.resize(*data_begin);
  if (const Status read = io::read_exactly(**file, 0, bytes); !read) {
    return refuse(ProblemKind::UnreadableFile, read.error().what, "");
  }
  const Result<Header> header = parse_header(bytes, file_bytes);
  if (!header) return refuse(ProblemKind::BadHeader, header.error().what, download_again(name));

  survey_.shards_.back().is_readable = true;
  survey_.shards_.back().tensor_count = header->tensors.size();
  if (const Status size = check_file_size(*header, file_bytes); !size) {
    const bool is_cut = file_bytes - header->data_begin < header->data_size;
    problems_.add({.severity = severity_of(shard),
                   .kind = is_cut ? ProblemKind::CutFile : ProblemKind::BadHeader,
                   .file = name,
                   .message = size.error().what,
                   .advice = download_again(name)});
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
  const std::string_view part = beginning(survey_.contract_->names, tensor.name);
  auto found = ignored_.find(part);
  if (found == ignored_.end()) {
    const bool has_room = ignored_.size() < kIgnoredPatterns;
    const std::string key = has_room ? std::string(part) : "";
    const std::string pattern = key + "*";
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

}  // namespace deltafin::checkpoint
