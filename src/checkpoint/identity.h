// Which model a checkpoint is, as far as a look at it can tell: what a saved state must agree with.
//
// Weak: SHA-256 over config.json and, for every shard, its name, its size, its header (the names,
// shapes and places of all tensors) and 64 KiB of its data, 16 KiB each from the start, one third,
// two thirds and the end. Another model, another revision, another quantization or a retrained copy
// is told apart; a change of single weights between the samples is not. Tokenizer files are not
// part of it: a state knows only token ids.
#pragma once

#include "base/result.h"
#include "base/sha256.h"
#include "checkpoint/checkpoint.h"
#include "io/file.h"

namespace deltafin::checkpoint {

struct Identity {
  Sha256Digest sha256{};
  bool operator==(const Identity&) const = default;
};

// Reads config.json, headers and samples: for a hundred shards of K3 about 110 MB. Errors: Io;
// BadModel, when a header has become unreadable since the checkpoint was opened.
Result<Identity> weak_identity(const io::Storage& storage, const Checkpoint& checkpoint);

}  // namespace deltafin::checkpoint
