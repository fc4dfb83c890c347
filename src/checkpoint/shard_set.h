// Which files of a folder make up its checkpoint.
//
//   model.safetensors.index.json there     the shards that it names, and the index as a second
//   witness else model.safetensors there           that file alone else every *.safetensors file;
//   the numbers in names such as
//                                          model-00002-of-000011.safetensors tell which are missing
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/index.h"
#include "checkpoint/problems.h"
#include "io/file.h"

namespace deltafin::checkpoint {

inline constexpr const char* kIndexFile = "model.safetensors.index.json";
inline constexpr const char* kSingleFile = "model.safetensors";

enum class ShardState : uint8_t {
  Present,
  Absent,
  Dangling,  // a symbolic link whose target does not exist
};

struct Shard {
  std::string name;
  ShardState state = ShardState::Present;
};

struct ShardSet {
  std::vector<Shard> shards;  // sorted by name; with an index, shard i is shard i of the index
  std::optional<Index> index;
};

// `entries` is the listing of `directory`. A damaged index is reported and then treated as absent,
// so that a survey can still say what the shards hold.
ShardSet find_shards(const io::Storage& storage, const std::string& directory,
                     const std::vector<io::DirectoryEntry>& entries, ProblemList& problems);

}  // namespace deltafin::checkpoint
