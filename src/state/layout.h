// What one sequence has to remember, layer by layer.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

namespace deltafin::state {

// A cache row per position: latent | extra (MLA), or keys | values (GQA). f32.
struct PagedLayout {
  uint32_t row_width = 0;
};

// Constant size: the last rows before a short convolution, and a recurrent matrix per head. f32.
struct RecurrentLayout {
  uint32_t window_rows = 0;   // convolution taps - 1
  uint32_t window_width = 0;  // channels of q, k and v together
  uint64_t matrix_size = 0;   // floats: heads x key_dim x value_dim
};

using LayerLayout = std::variant<PagedLayout, RecurrentLayout>;

// Positions are kept in pages, cut at absolute positions 0, 512, 1024, ...: the chunks of
// attention.
inline constexpr uint32_t kPagePositions = 512;

struct Layout {
  std::vector<LayerLayout> layers;

  // Growth per position, and what a sequence costs before its first token. Committed state only:
  // while a pass is open, the recurrent part exists twice.
  uint64_t bytes_per_position() const;
  uint64_t fixed_bytes() const;
};

}  // namespace deltafin::state
