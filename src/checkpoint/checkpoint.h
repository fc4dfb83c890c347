// An opened checkpoint directory: a contract, and proof that every tensor it names is where it
// should be. Reads only headers; the weights stay on disk until somebody asks for them by position.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "checkpoint/contract.h"
#include "checkpoint/tensor.h"
#include "io/file.h"

namespace deltafin::checkpoint {

// Where the parts of one routed expert lie. Absent parts (scales of a plain expert) have size 0.
using ExpertLocation = std::array<TensorLocation, kExpertPartCount>;

// Where every tensor of a contract lies. A location of size 0 is a tensor that has not been found;
// of those an opened checkpoint has none, but for optional tensors.
struct TensorTables {
  std::vector<std::unique_ptr<io::File>> files;
  std::vector<TensorLocation> globals;               // as contract.globals
  std::vector<std::vector<TensorLocation>> trunk;    // as contract.layers[layer].trunk
  std::vector<std::vector<ExpertLocation>> experts;  // [layer][expert]; empty for dense layers
};

// Movable, not copyable. Immutable once open, so any thread may use it at any time.
class Checkpoint {
 public:
  // Opens `directory`, checks config.json against what we can run and every tensor against the
  // contract. `storage` must outlive the result.
  // Errors: BadModel, with every problem found (up to a limit) and what to do; Io.
  static Result<Checkpoint> open(const io::Storage& storage, const std::string& directory);

  const std::string& directory() const { return directory_; }
  const ModelContract& contract() const { return contract_; }

  const io::File& file(uint32_t index) const { return *tables_.files[index]; }
  size_t file_count() const { return tables_.files.size(); }

  // In the order of contract().globals and of contract().layers[layer].trunk.
  const std::vector<TensorLocation>& globals() const { return tables_.globals; }
  const std::vector<TensorLocation>& trunk(uint32_t layer) const { return tables_.trunk[layer]; }
  const ExpertLocation& expert(uint32_t layer, uint32_t expert) const {
    return tables_.experts[layer][expert];
  }

 private:
  friend class Survey;
  Checkpoint(std::string directory, ModelContract contract, TensorTables tables)
      : directory_(std::move(directory)),
        contract_(std::move(contract)),
        tables_(std::move(tables)) {}

  std::string directory_;
  ModelContract contract_;
  TensorTables tables_;
};

}  // namespace deltafin::checkpoint
