// Kept states on disk: those that memory had no room for, and those of runs before this one.
//
// A folder of snapshots (state/snapshot.h), one a file, named "<tokens>-<hash of the
// tokens>.state". The name is how a beginning of a prompt is found without reading files; what is
// in a file is believed only after its checksums, its owner and its tokens were seen to be right.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "engine/kept_states.h"
#include "io/file.h"
#include "state/snapshot.h"

namespace deltafin::engine {

struct StateDirectoryOptions {
  uint64_t budget_bytes = 0;  // of our files; who was used longest ago is removed for a new one
  // Gets what went wrong with the folder, each thing once: nothing of it fails a request.
  std::function<void(const std::string&)> tell = {};
};

// Not thread-safe; the engine thread owns it. Several processes may share a folder.
class StateDirectory {
 public:
  // Makes the folder if it is not there, and looks at the headers of the states in it. Those of
  // other models and damaged ones are left alone and told of; whatever else lies there is not ours.
  // `storage` and `layout` must outlive the result. Errors: Usage for something that is no folder;
  // Io.
  static Result<StateDirectory> open(const io::Storage& storage, const std::string& path,
                                     const state::SnapshotOwner& owner, const state::Layout& layout,
                                     StateDirectoryOptions options);

  // The longest one that `prompt` can go on from, as KeptStates::find() says, if it has more than
  // `longer_than` tokens.
  std::optional<KeptState> load(std::span<const TokenId> prompt, uint64_t longer_than);
  // Written, synced and then named, so that a crash leaves no half of it.
  void save(const KeptState& kept);

  uint64_t count() const { return files_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct File {
    std::string name;
    uint64_t tokens = 0;
    uint64_t bytes = 0;
    bool has_logits = false;
  };
  using Iterator = std::vector<File>::iterator;

  StateDirectory(const io::Storage& storage, std::string path, const state::SnapshotOwner& owner,
                 const state::Layout& layout, StateDirectoryOptions options)
      : storage_(&storage),
        path_(std::move(path)),
        owner_(owner),
        layout_(&layout),
        options_(std::move(options)) {}
  Status look();
  std::optional<File> recognise(const std::string& name);
  Iterator find(std::span<const TokenId> prompt, uint64_t longer_than);
  Result<KeptState> read(const File& file, std::span<const TokenId> prompt) const;
  Status write(const std::string& name, const KeptState& kept) const;
  void make_room(uint64_t bytes);
  void mark_used(Iterator file);
  void forget(Iterator file);
  void tell(const std::string& what);
  std::string path_of(const std::string& name) const { return io::join_path(path_, name); }

  const io::Storage* storage_;
  std::string path_;
  state::SnapshotOwner owner_;
  const state::Layout* layout_;
  StateDirectoryOptions options_;
  std::vector<File> files_;  // the one used longest ago first
  uint64_t bytes_ = 0;
  std::set<std::string> told_;
};

}  // namespace deltafin::engine
