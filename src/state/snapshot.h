// One sequence as a file: its tokens, what they left in every layer, and where to go on. The format
// is in docs/formats.md.
//
// A file is read with suspicion: its header has a checksum of its own and says who wrote it; every
// size follows from the layout of the model and from counts that were checked, so nothing is
// allocated for what a damaged file claims; the whole is checksummed, and a state exists only when
// that was right.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "base/token.h"
#include "checkpoint/identity.h"
#include "io/file.h"
#include "state/sequence_state.h"

namespace deltafin::state {

// Who may use a snapshot: states of another model or of other arithmetic are other numbers.
struct SnapshotOwner {
  std::string arithmetic;  // numerics::kArithmetic; at most 16 bytes
  checkpoint::Identity identity;
  uint64_t vocab_size = 0;
  uint64_t max_positions = 0;
};

// What goes into a snapshot. Exactly one of `waiting` and `logits` is empty.
struct SnapshotView {
  const SequenceState& state;
  std::span<const TokenId> tokens;   // state.position_count() of them, at least one
  std::span<const TokenId> waiting;  // known, but not yet part of the state: they come next
  std::span<const float> logits;     // of the last position, which choose the next token. [vocab]
};

struct Snapshot {
  SequenceState state;
  std::vector<TokenId> tokens, waiting;
  std::vector<float> logits;
};

// What a snapshot says of itself.
struct SnapshotCounts {
  uint64_t tokens = 0, waiting = 0, logits = 0;
};

// Takes the next bytes of a file. An error ends the writing and is handed on.
using SnapshotSink = std::function<Status(std::span<const std::byte>)>;

// Writes everything, from the first byte to the last. No transaction is open on the state.
Status write_snapshot(const SnapshotOwner& owner, const SnapshotView& view,
                      const SnapshotSink& sink);

// Bytes of a file with these counts.
uint64_t snapshot_bytes(const Layout& layout, const SnapshotCounts& counts);

// Whether the file is a snapshot that `owner` may use, from its header and its size: to be asked
// before weights are loaded. Errors: Usage for a file that is something else, or of another
// version, model or arithmetic; Io for a damaged one.
Result<SnapshotCounts> check_snapshot(const io::File& file, const SnapshotOwner& owner);

// The same and all the rest. `layout` must outlive the result. Errors: those of check_snapshot;
// Cancelled.
Result<Snapshot> read_snapshot(const io::File& file, const SnapshotOwner& owner,
                               const Layout& layout, const CancelToken& cancel);

}  // namespace deltafin::state
