#include "memory/embedding_table.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "memory/image_layout.h"

namespace deltafin::memory {

namespace {

// Rows on their way at once.
constexpr size_t kRowsAtOnce = 64;

}  // namespace

Result<EmbeddingTable> EmbeddingTable::open(const checkpoint::Checkpoint& checkpoint,
                                            io::Reader& reader,
                                            const checkpoint::TensorLocation& location,
                                            const numerics::WeightMatrix& table) {
  EmbeddingTable result;
  result.table_ = table;
  if (table.data != nullptr) return result;
  result.file_ = &checkpoint.file(location.file);
  result.offset_ = location.offset;
  result.channel_ = reader.open_channel(io::ReadPriority::Demand);
  result.place_bytes_ = round_up(table.row_bytes(), kExtentAlignment) + 2 * kExtentAlignment;
  TRY(result.staging_, io::Arena::map(kRowsAtOnce * result.place_bytes_));
  return result;
}

Status EmbeddingTable::read(std::span<const TokenId> tokens, std::span<float> rows,
                            const CancelToken& cancel) {
  const size_t cols = table_.cols;
  CHECK(rows.size() == tokens.size() * cols);
  for (size_t first = 0; first < tokens.size(); first += kRowsAtOnce) {
    TRY_STATUS(cancel.check());
    const std::span<const TokenId> some =
        tokens.subspan(first, std::min(kRowsAtOnce, tokens.size() - first));
    float* const out = rows.data() + first * cols;
    if (file_ != nullptr) {
      if (Status status = read_from_file(some, out, cancel); !status)
        return std::unexpected(std::move(status).error().within("embedding"));
      continue;
    }
    for (size_t i = 0; i < some.size(); ++i)
      numerics::widen(table_.format, table_.data + size_t(some[i]) * table_.row_bytes(),
                      out + i * cols, cols);
  }
  return {};
}

Status EmbeddingTable::read_from_file(std::span<const TokenId> tokens, float* rows,
                                      const CancelToken& cancel) {
  std::vector<io::ReadRequest> requests;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint64_t offset = offset_ + uint64_t(tokens[i]) * table_.row_bytes();
    requests.push_back({.file = file_,
                        .offset = offset,
                        .into = staging_.bytes().subspan(
                            i * place_bytes_ + offset % kExtentAlignment, table_.row_bytes()),
                        .tag = i,
                        .surroundings_writable = true});  // a place has a border on both sides
  }
  channel_->submit(requests);
  Status status;
  while (status) {
    const std::optional<io::ReadCompletion> completion = channel_->wait();
    if (!completion) return {};
    status = completion->status;
    if (status) status = cancel.check();
    if (!status) break;
    const size_t i = completion->tag;
    numerics::widen(table_.format, requests[i].into.data(), rows + i * table_.cols, table_.cols);
  }
  channel_->cancel();
  return status;
}

}  // namespace deltafin::memory
