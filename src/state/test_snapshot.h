// For tests: a small state, and snapshots that are changed and sealed again, so that the checks
// behind the checksums are reached.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "state/snapshot.h"

namespace deltafin::state::test {

inline constexpr uint64_t kVocab = 5;
inline constexpr uint64_t kMaxPositions = 2000;
inline constexpr size_t kFixedBytes = 96, kEntryBytes = 32, kChecksumBytes = sizeof(Sha256Digest);

// Two paged layers around a recurrent one.
inline Layout mixed_layout() {
  return {.layers = {PagedLayout{.row_width = 3},
                     RecurrentLayout{.window_rows = 2, .window_width = 2, .matrix_size = 5},
                     PagedLayout{.row_width = 1}}};
}

inline SnapshotOwner owner() {
  checkpoint::Identity identity;
  identity.sha256.fill(std::byte{0x5a});
  return {.arithmetic = "canon-1",
          .identity = identity,
          .vocab_size = kVocab,
          .max_positions = kMaxPositions};
}

// A state of `count` rows in which every float is another.
inline SequenceState filled_state(const Layout& layout, size_t count) {
  SequenceState state(layout);
  Transaction transaction(state, count, ReplayInputs::Dropped);
  float next = 0;
  const auto fill = [&](float* values, size_t size) {
    for (size_t i = 0; i < size; ++i) values[i] = ++next;
  };
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    if (const PagedLayout* paged = std::get_if<PagedLayout>(&layout.layers[i])) {
      for (size_t row = 0; row < count; ++row)
        fill(transaction.cache_row(i, row), paged->row_width);
    } else {
      RecurrentState& after = transaction.after(i);
      fill(after.window.data(), after.window.size());
      fill(after.matrix.data(), after.matrix.size());
    }
  }
  transaction.commit(count);
  return state;
}

inline std::vector<TokenId> some_tokens(size_t count) {
  std::vector<TokenId> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = TokenId(i % kVocab);
  return tokens;
}

inline std::vector<std::byte> bytes_of(const SnapshotView& view) {
  std::vector<std::byte> bytes;
  const Status status = write_snapshot(owner(), view, [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return Status();
  });
  return status ? bytes : std::vector<std::byte>();
}

// Makes both checksums right again, as far as there is room for them.
inline void seal(std::vector<std::byte>& bytes) {
  const auto put = [&](size_t at) {
    Sha256 sha;
    sha.add(std::span(bytes).first(at));
    std::ranges::copy(sha.digest(), bytes.begin() + ptrdiff_t(at));
  };
  if (bytes.size() < kFixedBytes) return;
  uint32_t layer_count = 0;
  std::memcpy(&layer_count, bytes.data() + 12, sizeof layer_count);
  const uint64_t header = kFixedBytes + uint64_t{layer_count} * kEntryBytes;
  if (header + 2 * kChecksumBytes > bytes.size()) return;
  put(header);
  put(bytes.size() - kChecksumBytes);
}

}  // namespace deltafin::state::test
