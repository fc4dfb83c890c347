// How a survey comes about, step by step. Only survey.cc uses this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/problems.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shard_set.h"
#include "checkpoint/survey.h"
#include "checkpoint/tensor_map.h"
#include "io/file.h"

namespace deltafin::checkpoint {

// One survey in the making: run() takes the steps in order. Used only by Survey::of, which see.
class Surveyor {
 public:
  Surveyor(const io::Storage& storage, Survey& survey)
      : storage_(storage), survey_(survey), problems_(survey.problems_) {}

  void run() {
    if (!look_at_folder()) return;
    look_for_unfinished_files();
    read_config();
    if (!survey_.contract_ && !has_shards()) return;  // then it is some other folder: one problem
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
  bool has_shards() const {
    return std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) {
      return entry.name.ends_with(".safetensors") || entry.name == kIndexFile;
    });
  }

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
  bool looks_interrupted(uint32_t first_missing) const;
  std::string describe_missing(const std::vector<uint32_t>& missing, ShardState state) const;
  void report_missing_tensors();
  void report_missing(const TensorMap::Missing& missing, std::optional<uint32_t> layer);
  void finish();

  Place place_of(std::string_view name) const {
    return map_ ? map_->roster().find(name) : Place{.kind = PlaceKind::Ignored};
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

}  // namespace deltafin::checkpoint
