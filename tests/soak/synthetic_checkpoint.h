// A checkpoint of any size on no disk: the whole folder of a Kimi model as it is published, with
// weights made where they are read (soak/noise.h). Any reader reads it like files, at any offset,
// in any order, from any thread, and sees the same bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "checkpoint/contract.h"
#include "io/file.h"
#include "soak/noise.h"

namespace deltafin::test {

// Laid out like the release of K3: layer i in shard i + 1, then one shard each for what belongs to
// no layer, for the projector and for the vision tower (for a model that has them); in a shard,
// tensors by name, so that the six of an expert lie side by side and experts are not in the order
// of their numbers; data that begins wherever the header ends, so at no particular alignment.
//
// Names and shapes of projector and tower are a reconstruction from vision_config: their number and
// their sum of bytes are the published ones.
//
// Weights let a pass be alive: products keep the size of what goes in, norms and decays are
// moderate, and routers choose other experts for other tokens.
//
// Must outlive its files.
class SyntheticCheckpoint final : public io::Storage {
 public:
  static constexpr const char* kFolder = "/synthetic";

  // `config` is the text of a config.json of the Kimi family. Throws when it is none.
  explicit SyntheticCheckpoint(std::string config);

  uint64_t tensor_count() const { return tensor_count_; }
  // Of all tensors, without headers: the index's total_size.
  uint64_t tensor_bytes() const { return tensor_bytes_; }
  // Spent on what a disk would just hold, so far: to be subtracted by whoever measures something
  // else. Weights cost time of the readers' threads and are not in it.
  std::chrono::nanoseconds time_in_headers() const { return std::chrono::nanoseconds(text_time_); }

  Result<std::unique_ptr<io::File>> open(const std::string& path) const override;
  Result<std::vector<io::DirectoryEntry>> list(const std::string& path) const override;
  bool exists(const std::string& path) const override;
  bool is_directory(const std::string& path) const override { return path == kFolder; }

 private:
  class ShardFile;
  struct Tensor;

  // A tensor in its shard, or a part of one, as reads need it.
  struct Stretch {
    uint64_t begin = 0;  // in the file
    Noise noise;
  };
  struct Shard {
    std::string name;
    uint64_t file_bytes = 0;
    std::vector<Stretch> stretches = {};  // by begin; the first begins where the header ends
  };

  std::vector<Tensor> tensors_of(size_t shard) const;
  std::string header_of(size_t shard) const;
  std::string index() const;
  void lay_out(size_t shard);
  // The header of a shard, kept until another one's is asked for: it is read in several pieces.
  std::shared_ptr<const std::string> header(size_t shard) const;

  std::string config_;
  checkpoint::ModelContract contract_;
  std::vector<Shard> shards_;
  uint64_t tensor_count_ = 0, tensor_bytes_ = 0;

  mutable std::mutex mutex_;  // guards the header that is kept
  mutable size_t header_shard_ = SIZE_MAX;
  mutable std::shared_ptr<const std::string> header_;
  mutable std::atomic<int64_t> text_time_ = 0;  // nanoseconds
};

}  // namespace deltafin::test
