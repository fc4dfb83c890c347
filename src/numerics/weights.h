// Weight matrices as the kernels see them: the checkpoint's own bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deltafin::numerics {

enum class WeightFormat : uint8_t {
  F32,    // IEEE binary32, little endian
  Bf16,   // the upper half of a binary32
  Mxfp4,  // E2M1 codes, two a byte (even column in the low nibble), one E8M0 scale per 32 columns
};

// A row-major matrix [rows, cols] that acts as y = W x. Does not own its bytes. No alignment is
// needed: experts lie at any byte of a shard.
struct WeightMatrix {
  WeightFormat format = WeightFormat::F32;
  size_t rows = 0;
  size_t cols = 0;                    // Mxfp4: a multiple of 32
  const std::byte* data = nullptr;    // rows x row_bytes(), row_stride() apart
  const std::byte* scales = nullptr;  // Mxfp4 only: rows x cols / 32; never 255 (checked when read)
  size_t stride = 0;  // bytes from row to row; 0: they lie without a gap. Not for Mxfp4.

  size_t row_stride() const { return stride != 0 ? stride : row_bytes(); }
  size_t row_bytes() const {
    switch (format) {
      case WeightFormat::F32:
        return cols * 4;
      case WeightFormat::Bf16:
        return cols * 2;
      case WeightFormat::Mxfp4:
        return cols / 2;
    }
    return 0;
  }

  // Rows [first, first + count) as a matrix of their own.
  WeightMatrix row_range(size_t first, size_t count) const {
    WeightMatrix part = *this;
    part.rows = count;
    part.data = data + first * row_stride();
    if (scales != nullptr) part.scales = scales + first * (cols / kMxfp4Group);
    return part;
  }

  static constexpr size_t kMxfp4Group = 32;
};

// Widens `count` stored F32 or Bf16 values at any alignment; exact.
void widen(WeightFormat format, const std::byte* stored, float* out, size_t count);

}  // namespace deltafin::numerics
