// Puts the tensors of shard headers into the places of a contract, and keeps the books: what is
// found, what is lost with a shard, what is missing without an excuse.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/problems.h"
#include "checkpoint/roster.h"
#include "checkpoint/safetensors.h"

namespace deltafin::checkpoint {

class TensorMap {
 public:
  // `contract` must outlive this and stay where it is.
  explicit TensorMap(const ModelContract& contract);

  const Roster& roster() const { return roster_; }
  // From now on, placed tensors lie in `file`. Nothing of it is kept if none is placed.
  void begin_file(std::unique_ptr<io::File> file, const std::string& name);

  enum class Verdict : uint8_t { Placed, WrongDType, WrongShape, Twice };
  // `tensor` of the current file, whose data section starts at `data_begin`, into a needed place.
  Verdict place(const Place& place, const TensorEntry& tensor, uint64_t data_begin);
  // The file that holds what is at `place`.
  const std::string& file_at(const Place& place) const;
  // An absence that has been reported: the tensor's shard is missing or damaged.
  void mark_lost(const Place& place);

  // The names of what is neither found nor lost, at most `limit` of them, and how many there are.
  struct Missing {
    std::vector<std::string> names;
    uint64_t count = 0;
  };
  Missing missing_globals(size_t limit) const;
  Missing missing_in_layer(uint32_t layer, size_t limit) const;

  struct Found {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };
  Found found_globals() const;
  Found found_in_layer(uint32_t layer) const;

  TensorTables take() { return std::move(tables_); }

 private:
  const TensorLocation& slot(const Place& place) const;
  TensorLocation& slot(const Place& place);
  void spread_stack(const Place& place);

  const ModelContract& contract_;
  Roster roster_;
  TensorTables tables_;
  std::vector<std::string> file_names_;     // of tables_.files
  std::unique_ptr<io::File> current_file_;  // not yet in tables_
  std::string current_name_;
};

}  // namespace deltafin::checkpoint
