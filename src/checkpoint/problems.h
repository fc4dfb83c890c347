// What a survey finds wrong with a checkpoint, in a form that a person and a program can read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/file.h"

namespace deltafin::checkpoint {

enum class Severity : uint8_t {
  Note,   // worth knowing; the checkpoint opens
  Error,  // it does not
};

enum class ProblemKind : uint8_t {
  NotACheckpoint,      // the path is no folder with a config.json and *.safetensors files
  BadConfig,           // config.json is damaged, or describes a model that we cannot run
  BadIndex,            // model.safetensors.index.json is damaged
  UnfinishedDownload,  // traces of one: *.incomplete and the like
  MissingShard,        // files that should be there are not, or are dangling links
  PointerFile,         // a Git-LFS pointer instead of the file
  UnreadableFile,      // the operating system says no
  BadHeader,           // a shard is damaged
  CutFile,             // a shard is shorter than it should be
  IndexMismatch,       // index and shard disagree
  WrongTensor,         // dtype or shape contradicts the config
  UnexpectedTensor,    // inside the language model, but the config asks for no such tensor
  DuplicateTensor,     // in two shards
  MissingTensor,       // in no shard
  UnusedFile,          // a *.safetensors file that belongs to nothing
  Count
};
inline constexpr size_t kProblemKindCount = static_cast<size_t>(ProblemKind::Count);

const char* name_of(ProblemKind kind);  // "missing-shard"

struct Problem {
  Severity severity = Severity::Error;
  ProblemKind kind = ProblemKind::NotACheckpoint;
  std::string file = {};    // name inside the checkpoint's folder; empty: the folder
  std::string tensor = {};  // full name, where it is about one
  std::optional<uint32_t> layer = {};
  std::string message = {};  // what was found and what was expected; names neither file nor tensor
  std::string advice = {};   // what to do; may be empty
};

// "model-00002-of-000011.safetensors: tensor a.b: <message>"
std::string to_line(const Problem& problem);

// The kind of a failed attempt to read config.json, the index or a shard: a link to nowhere is a
// part that is missing, anything else that the operating system refuses is its own problem.
ProblemKind kind_of_read_error(const io::Storage& storage, const std::string& directory,
                               const std::string& file, const Error& error);

// Problems in the order they were found. A damaged checkpoint can have half a million of one kind,
// so only the first few of each kind are kept and the rest are counted.
class ProblemList {
 public:
  static constexpr size_t kKeptOfEachKind = 32;

  void add(Problem problem);

  const std::vector<Problem>& kept() const { return kept_; }
  uint64_t error_count() const { return error_count_; }  // kept or not
  uint64_t count_of(ProblemKind kind) const { return counts_[static_cast<size_t>(kind)]; }
  bool keeps_another(ProblemKind kind) const { return count_of(kind) < kKeptOfEachKind; }

  // All errors as one, for a caller that can only say no: the first few problems, how many more
  // there are, and what to do. Io when the operating system is to blame for all of it, else
  // BadModel. There must be an error.
  Error to_error(const std::string& directory) const;

 private:
  std::vector<Problem> kept_;
  std::array<uint64_t, kProblemKindCount> counts_ = {};
  uint64_t error_count_ = 0;
};

}  // namespace deltafin::checkpoint
