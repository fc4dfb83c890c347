// A look at a checkpoint folder that never fails: what model it is, what is there, what is missing
// or wrong, and which layers are complete. One code path for `inspect`, which shows it, and for
// Checkpoint::open, which refuses when there is an error in it.
//
// Reads config.json, the index and the header of every shard; no weights. K3's 497,220 tensors take
// about a second and, while the index is parsed, 180 MB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/contract.h"
#include "checkpoint/problems.h"
#include "io/file.h"

namespace deltafin::checkpoint {

// Tensors of the contract that lie whole in a shard, out of those that should.
struct Completeness {
  uint64_t found = 0;
  uint64_t expected = 0;
  bool is_complete() const { return found == expected; }
};

// Tensors outside the language model, by the first part of their names: "vision_tower.*".
struct IgnoredTensors {
  std::string pattern;
  uint64_t count = 0;
  uint64_t bytes = 0;
};

struct ShardSummary {
  std::string name;
  bool is_readable = false;  // there, with a header that makes sense
  uint64_t file_bytes = 0;
  uint64_t tensor_count = 0;  // in its header
};

class Survey {
 public:
  // `storage` must outlive the result.
  static Survey of(const io::Storage& storage, const std::string& directory);

  const std::string& directory() const { return directory_; }
  // Empty when config.json is missing or refused; the problems say why.
  const std::optional<ModelContract>& contract() const { return contract_; }
  const ProblemList& problems() const { return problems_; }
  bool is_usable() const { return problems_.error_count() == 0; }

  // Empty (0 of 0) without a contract.
  Completeness globals() const { return globals_; }
  const std::vector<Completeness>& layers() const { return layers_; }
  // Of the contract's tensors that were found, as stored.
  uint64_t found_bytes() const { return found_bytes_; }

  const std::vector<ShardSummary>& shards() const { return shards_; }
  const std::vector<IgnoredTensors>& ignored() const { return ignored_; }
  // Relative to directory(); see find_unfinished_files.
  const std::vector<std::string>& unfinished_files() const { return unfinished_files_; }

  // Errors: ProblemList::to_error, when the survey is not usable.
  Result<Checkpoint> into_checkpoint() &&;

 private:
  friend class Surveyor;
  std::string directory_;
  std::optional<ModelContract> contract_;
  ProblemList problems_;
  Completeness globals_;
  std::vector<Completeness> layers_;
  uint64_t found_bytes_ = 0;
  std::vector<ShardSummary> shards_;
  std::vector<IgnoredTensors> ignored_;
  std::vector<std::string> unfinished_files_;
  TensorTables tables_;
};

}  // namespace deltafin::checkpoint
