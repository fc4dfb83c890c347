// Digests that let two runs be compared without their logits.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/sha256.h"

namespace deltafin::audit {

// SHA-256 over little-endian f32 logit rows, in order: the rows of exactly those positions that
// produced an output token. Prefix reuse, chunking and restored states therefore do not change it.
class LogitsDigest {
 public:
  void add(std::span<const float> logits);
  uint64_t row_count() const { return row_count_; }
  // Lower-case hexadecimal of everything added so far; more may follow.
  std::string hex() const { return to_hex(sha_.digest()); }

 private:
  Sha256 sha_;
  uint64_t row_count_ = 0;
};

}  // namespace deltafin::audit
