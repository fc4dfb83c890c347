#include "checkpoint/index.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <map>

#include "base/limits.h"

namespace deltafin::checkpoint {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view kShardSuffix = ".safetensors";
constexpr size_t kFileNameBytes = 255;  // what Linux file systems allow

std::unexpected<Error> bad_index(std::string what) {
  return fail(ErrorCode::BadModel, std::move(what));
}

std::unexpected<Error> bad_index_json(simdjson::error_code code) {
  return bad_index(fmt::format("not valid JSON: {}", simdjson::error_message(code)));
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name.size() <= kFileNameBytes && name != "." && name != ".." &&
         name.find_first_of("/\\") == std::string_view::npos &&
         std::none_of(name.begin(), name.end(), is_control);
}

// Builds an Index from a stream of (tensor, shard) pairs.
class IndexReader {
 public:
  Status read(std::string json);
  Index finish() &&;

 private:
  Status read_weight_map(ondemand::value& value);
  void read_metadata(ondemand::value& value);
  Status add(std::string_view tensor, std::string_view shard);
  Result<uint32_t> shard_number(std::string_view shard);
  void renumber_shards();
  Status sort_entries();

  Index index_;
  std::map<std::string, uint32_t, std::less<>> shard_numbers_;  // in order of appearance
  bool has_weight_map_ = false;
};

Status IndexReader::read(std::string json) {
  json.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  ondemand::parser parser;
  ondemand::document document;
  const simdjson::error_code parsed =
      parser.iterate(json.data(), json.size(), json.capacity()).get(document);
  if (parsed) return bad_index_json(parsed);
  ondemand::object root;
  if (const simdjson::error_code code = document.get_object().get(root)) {
    return code == simdjson::INCORRECT_TYPE ? bad_index("not a JSON object") : bad_index_json(code);
  }
  for (simdjson::simdjson_result<ondemand::field> field : root) {
    std::string_view key;
    if (const simdjson::error_code code = field.unescaped_key().get(key))
      return bad_index_json(code);
    ondemand::value value;
    if (const simdjson::error_code code = field.value().get(value)) return bad_index_json(code);
    if (key == "weight_map") {
      TRY_STATUS(read_weight_map(value));
    } else if (key == "metadata") {
      read_metadata(value);
    }
  }
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    return bad_index("not valid JSON: it goes on after the closing brace");
  }
  if (!has_weight_map_)
    return bad_index("weight_map is missing; expected {\"tensor\": \"shard\", ...}");
  if (index_.entries_.empty())
    return bad_index("weight_map is empty; expected the model's tensors");
  renumber_shards();
  return sort_entries();
}

Status IndexReader::read_weight_map(ondemand::value& value) {
  ondemand::object map;
  if (value.get_object().get(map) != simdjson::SUCCESS)
    return bad_index("weight_map is not an object");
  if (std::exchange(has_weight_map_, true)) return bad_index("weight_map is given twice");
  for (simdjson::simdjson_result<ondemand::field> field : map) {
    std::string_view tensor, shard;
    if (const simdjson::error_code code = field.unescaped_key().get(tensor))
      return bad_index_json(code);
    if (field.value().get_string().get(shard) != simdjson::SUCCESS) {
      return bad_index(fmt::format("weight_map: the shard of \"{}\" is not a string",
                                   tensor.substr(0, limits::kTensorNameBytes)));
    }
    TRY_STATUS(add(tensor, shard));
  }
  return {};
}

// Only total_size is of interest, and nothing depends on it: whatever else stands there is no
// error.
void IndexReader::read_metadata(ondemand::value& value) {
  double total_size = 0;
  if (value["total_size"].get_double().get(total_size) == simdjson::SUCCESS) {
    index_.total_size_ = total_size;
  }
}

Status IndexReader::add(std::string_view tensor, std::string_view shard) {
  if (tensor.size() > limits::kTensorNameBytes ||
      std::any_of(tensor.begin(), tensor.end(), is_control)) {
    return bad_index(
        fmt::format("weight_map: a tensor name of {} bytes is too long or holds control characters",
                    tensor.size()));
  }
  if (index_.entries_.size() == limits::kTensors) {
    return bad_index(fmt::format("weight_map lists more than {} tensors", limits::kTensors));
  }
  TRY(const uint32_t number, shard_number(shard));
  // The file is at most limits::kIndexBytes = 2^29 long, so 32 bits are enough for the names.
  index_.entries_.push_back({.name_at = static_cast<uint32_t>(index_.names_.size()),
                             .name_size = static_cast<uint32_t>(tensor.size()),
                             .shard = number});
  index_.names_.insert(index_.names_.end(), tensor.begin(), tensor.end());
  return {};
}

Result<uint32_t> IndexReader::shard_number(std::string_view shard) {
  const auto known = shard_numbers_.find(shard);
  if (known != shard_numbers_.end()) return known->second;
  if (!is_plain_file_name(shard) || !shard.ends_with(kShardSuffix)) {
    std::string shown(shard.substr(0, kFileNameBytes));
    std::replace_if(shown.begin(), shown.end(), is_control, '?');
    return bad_index(fmt::format(
        "weight_map names the shard \"{}\", expected the plain name of a *.safetensors file beside "
        "the index",
        shown));
  }
  const uint32_t number = static_cast<uint32_t>(shard_numbers_.size());
  shard_numbers_.emplace(shard, number);
  return number;
}

// From order of appearance to order of name.
void IndexReader::renumber_shards() {
  std::vector<uint32_t> rank(shard_numbers_.size());
  for (const auto& [shard, number] : shard_numbers_) {
    rank[number] = static_cast<uint32_t>(index_.shards_.size());
    index_.shards_.push_back(shard);
  }
  for (Index::Entry& entry : index_.entries_) entry.shard = rank[entry.shard];
}

// By shard first, which takes no look at the names: an index is written in their order, so that
// those of a shard then are in order, too, and a sort of half a million would only find that out.
Status IndexReader::sort_entries() {
  std::vector<size_t>& first_of = index_.first_of_;
  first_of.assign(index_.shards_.size() + 1, 0);
  for (const Index::Entry& entry : index_.entries_) ++first_of[entry.shard + 1];
  for (size_t s = 0; s < index_.shards_.size(); ++s) first_of[s + 1] += first_of[s];
  std::vector<size_t> next_of = first_of;
  std::vector<Index::Entry> by_shard(index_.entries_.size());
  for (const Index::Entry& entry : index_.entries_) by_shard[next_of[entry.shard]++] = entry;
  index_.entries_ = std::move(by_shard);

  const auto name = [this](const Index::Entry& entry) { return index_.name(entry); };
  for (size_t s = 0; s < index_.shards_.size(); ++s) {
    const std::span entries =
        std::span(index_.entries_).subspan(first_of[s], first_of[s + 1] - first_of[s]);
    if (!std::ranges::is_sorted(entries, {}, name)) std::ranges::sort(entries, {}, name);
    // The same name in two shards is found when the second shard turns out to lack it, or to hold
    // it.
    const auto twin = std::ranges::adjacent_find(entries, {}, name);
    if (twin != entries.end())
      return bad_index(fmt::format("weight_map lists {} twice", name(*twin)));
  }
  return {};
}

Index IndexReader::finish() && { return std::move(index_); }

Result<Index> Index::parse(std::string json) {
  if (json.size() > limits::kIndexBytes) {
    return bad_index(
        fmt::format("{} bytes long, expected at most {}", json.size(), limits::kIndexBytes));
  }
  IndexReader reader;
  TRY_STATUS(reader.read(std::move(json)));
  return std::move(reader).finish();
}

std::span<const Index::Entry> Index::entries_of(uint32_t shard) const {
  return std::span(entries_).subspan(first_of_[shard], first_of_[shard + 1] - first_of_[shard]);
}

std::string_view Index::name(const Entry& entry) const {
  return std::string_view(names_.data() + entry.name_at, entry.name_size);
}

std::optional<uint32_t> Index::shard_of(std::string_view name_wanted) const {
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    const std::span<const Entry> entries = entries_of(shard);
    const auto found = std::lower_bound(
        entries.begin(), entries.end(), name_wanted,
        [this](const Entry& entry, std::string_view wanted) { return name(entry) < wanted; });
    if (found != entries.end() && name(*found) == name_wanted) return shard;
  }
  return std::nullopt;
}

}  // namespace deltafin::checkpoint
