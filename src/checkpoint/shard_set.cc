#include "checkpoint/shard_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "checkpoint/download_traces.h"

namespace deltafin::checkpoint {
namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kOf = "-of-";
constexpr size_t kNumberedShards = 10'000;  // a larger total in a name is no shard count

// model-00002-of-000011.safetensors, taken apart.
struct NumberedName {
  std::string stem;        // "model-"
  size_t digits = 0;       // of the number; K3 has five, and six for the total
  uint32_t number = 0;     // 1-based
  std::string total_text;  // "000011"
  uint32_t total = 0;
};

std::optional<uint32_t> parse_number(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<NumberedName> parse_numbered(std::string_view name) {
  name.remove_suffix(kSuffix.size());
  const size_t of = name.rfind(kOf);
  if (of == std::string_view::npos) return std::nullopt;
  const std::string_view total = name.substr(of + kOf.size());
  const std::string_view front = name.substr(0, of);
  const size_t last_of_stem = front.find_last_not_of("0123456789");
  const size_t number_at = last_of_stem == std::string_view::npos ? 0 : last_of_stem + 1;
  const std::optional<uint32_t> number = parse_number(front.substr(number_at));
  const std::optional<uint32_t> count = parse_number(total);
  if (!number || !count || *count > kNumberedShards) return std::nullopt;
  return NumberedName{.stem = std::string(front.substr(0, number_at)),
                      .digits = front.size() - number_at,
                      .number = *number,
                      .total_text = std::string(total),
                      .total = *count};
}

// The shards that the names of the others say should be there too.
std::vector<std::string> infer_absent(const std::vector<std::string>& names) {
  // Shards of one set share everything but the number.
  std::map<std::pair<std::string, std::string>, NumberedName> sets;
  for (const std::string& name : names) {
    if (std::optional<NumberedName> parsed = parse_numbered(name)) {
      sets.try_emplace({parsed->stem, parsed->total_text}, *parsed);
    }
  }
  const std::set<std::string> present(names.begin(), names.end());
  std::vector<std::string> absent;
  for (const auto& [key, set] : sets) {
    for (uint32_t number = 1; number <= set.total; ++number) {
      std::string name =
          fmt::format("{}{:0{}}{}{}{}", set.stem, number, set.digits, kOf, set.total_text, kSuffix);
      if (present.contains(name)) continue;
      absent.push_back(std::move(name));
      if (absent.size() == kNumberedShards) return absent;  // names that mean something else
    }
  }
  return absent;
}

// The names of the folder's *.safetensors files.
std::vector<std::string> safetensors_in(const std::vector<io::DirectoryEntry>& entries) {
  std::vector<std::string> names;
  for (const io::DirectoryEntry& entry : entries) {
    if (!entry.is_directory && entry.name.ends_with(kSuffix) && !entry.name.starts_with('.')) {
      names.push_back(entry.name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Finder {
 public:
  Finder(const io::Storage& storage, const std::string& directory,
         const std::vector<io::DirectoryEntry>& entries, ProblemList& problems)
      : storage_(storage),
        directory_(directory),
        entries_(entries),
        present_(safetensors_in(entries)),
        problems_(problems) {}

  ShardSet find() {
    ShardSet set;
    set.index = read_index();
    if (set.index) {
      for (const std::string& name : set.index->shards()) add(name, set);
    } else if (is_present(kSingleFile)) {
      add(kSingleFile, set);
    } else {
      add_all(set);
    }
    report_unused(set);
    if (set.shards.empty()) report_no_weights();
    return set;
  }

 private:
  std::optional<Index> read_index() {
    const bool listed = std::any_of(entries_.begin(), entries_.end(),
                                    [](const auto& entry) { return entry.name == kIndexFile; });
    if (!listed) return std::nullopt;
    Result<std::string> text =
        io::read_text(storage_, io::join_path(directory_, kIndexFile), limits::kIndexBytes);
    if (!text) {
      // The message names the path.
      problems_.add({.kind = kind_of_read_error(storage_, directory_, kIndexFile, text.error()),
                     .message = text.error().what});
      return std::nullopt;
    }
    if (is_pointer_file(*text)) {
      problems_.add({.kind = ProblemKind::PointerFile,
                     .file = kIndexFile,
                     .message = "is a Git-LFS pointer, not the file itself",
                     .advice = fmt::format("run `git lfs pull` in {}", directory_)});
      return std::nullopt;
    }
    Result<Index> index = Index::parse(std::move(*text));
    if (!index) {
      problems_.add({.kind = ProblemKind::BadIndex,
                     .file = kIndexFile,
                     .message = index.error().what,
                     .advice = fmt::format("download {} again", kIndexFile)});
      return std::nullopt;
    }
    return std::move(*index);
  }

  bool is_present(const std::string& name) const {
    return std::binary_search(present_.begin(), present_.end(), name);
  }

  void add(const std::string& name, ShardSet& set) const {
    Shard shard{.name = name};
    if (!is_present(name)) {
      shard.state = ShardState::Absent;
    } else if (!storage_.exists(io::join_path(directory_, name))) {
      shard.state = ShardState::Dangling;
    }
    set.shards.push_back(std::move(shard));
  }

  void add_all(ShardSet& set) const {
    std::vector<std::string> names = present_;
    const std::vector<std::string> absent = infer_absent(names);
    names.insert(names.end(), absent.begin(), absent.end());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) add(name, set);
  }

  void report_unused(const ShardSet& set) {
    for (const std::string& name : present_) {
      if (std::ranges::binary_search(set.shards, name, {}, &Shard::name)) continue;
      problems_.add({.severity = Severity::Note,
                     .kind = ProblemKind::UnusedFile,
                     .file = name,
                     .message = set.index
                                    ? "is not in the index and is not read"
                                    : fmt::format("is not read, as {} is there", kSingleFile)});
    }
  }

  void report_no_weights() {
    std::string others;
    for (const io::DirectoryEntry& entry : entries_) {
      const std::string& name = entry.name;
      if (name.ends_with(".bin") || name.ends_with(".gguf") || name.ends_with(".pt")) {
        others = fmt::format(" ({} is another format)", name);
      }
    }
    problems_.add({.kind = ProblemKind::NotACheckpoint,
                   .message = fmt::format("no *.safetensors file is there{}", others),
                   .advice = "download the model's *.safetensors files into this folder"});
  }

  const io::Storage& storage_;
  const std::string& directory_;
  const std::vector<io::DirectoryEntry>& entries_;
  const std::vector<std::string> present_;  // *.safetensors, sorted
  ProblemList& problems_;
};

}  // namespace

ShardSet find_shards(const io::Storage& storage, const std::string& directory,
                     const std::vector<io::DirectoryEntry>& entries, ProblemList& problems) {
  return Finder(storage, directory, entries, problems).find();
}

}  // namespace deltafin::checkpoint
