// model.safetensors.index.json: which shard holds which tensor.
//
//   {"metadata": {"total_size": 1560860324864}, "weight_map": {"tensor name": "shard file name",
//   ...}}
//
// K3's has 497,220 names in 60 MB, so names lie in one block of memory and entries are twelve
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace deltafin::checkpoint {

class Index {
 public:
  struct Entry {
    uint32_t name_at = 0;  // into the block of names; use Index::name()
    uint32_t name_size = 0;
    uint32_t shard = 0;  // into shards()
  };

  // Pure; takes the text by value because it is large and must be padded in place. Messages name
  // the field or tensor; the caller puts the file in front. Values that have no influence
  // (everything but weight_map and metadata.total_size) are skipped unread. Errors: BadModel; a
  // shard name that is not a plain *.safetensors file name, so that no index can reach outside its
  // folder; a tensor listed twice.
  static Result<Index> parse(std::string json);

  // Sorted, each once.
  const std::vector<std::string>& shards() const { return shards_; }
  size_t tensor_count() const { return entries_.size(); }
  // The tensors that the index puts into one shard, sorted by name.
  std::span<const Entry> entries_of(uint32_t shard) const;
  std::string_view name(const Entry& entry) const;
  // The shard that should hold `name`; one binary search per shard, for messages.
  std::optional<uint32_t> shard_of(std::string_view name) const;
  // As the file says, in bytes; some writers give it as a float, some leave it out. Informative
  // only.
  std::optional<double> total_size() const { return total_size_; }

 private:
  friend class IndexReader;
  std::vector<std::string> shards_;
  std::vector<char> names_;
  std::vector<Entry> entries_;    // by (shard, name)
  std::vector<size_t> first_of_;  // entries of shard s: [first_of_[s], first_of_[s + 1])
  std::optional<double> total_size_;
};

// Whether `name` can only mean a file of the folder it is looked up in.
bool is_plain_file_name(std::string_view name);

}  // namespace deltafin::checkpoint
