// The rows of an embedding by token: from memory where the table is there anyway, else each row
// from its file when a token asks for it. K3's table is 2.3 GB, of which a token needs 14 KB.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/cancel.h"
#include "base/result.h"
#include "base/token.h"
#include "checkpoint/checkpoint.h"
#include "io/arena.h"
#include "io/reader.h"
#include "numerics/weights.h"

namespace deltafin::memory {

// Not thread-safe: the engine thread owns it.
class EmbeddingTable {
 public:
  // `table.data` may be null: the rows are then read from `location`. The references must outlive
  // the table. Errors: OverBudget.
  static Result<EmbeddingTable> open(const checkpoint::Checkpoint& checkpoint, io::Reader& reader,
                                     const checkpoint::TensorLocation& location,
                                     const numerics::WeightMatrix& table);

  // rows[i, table.cols] of tokens[i], widened. Ids are in [0, table.rows). Errors: Io, naming file
  // and offset; Cancelled.
  Status read(std::span<const TokenId> tokens, std::span<float> rows, const CancelToken& cancel);

 private:
  EmbeddingTable() = default;
  Status read_from_file(std::span<const TokenId> tokens, float* rows, const CancelToken& cancel);

  numerics::WeightMatrix table_;
  const io::File* file_ = nullptr;
  uint64_t offset_ = 0;
  std::unique_ptr<io::ReadChannel> channel_;
  io::Arena staging_;
  uint64_t place_bytes_ = 0;
};

}  // namespace deltafin::memory
