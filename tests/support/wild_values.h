// Weights and activations that look for trouble: many binades, zeros of both signs, subnormals,
// weights at an odd address.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/philox.h"
#include "numerics/weights.h"

namespace deltafin::test {

inline float wild_float(Random& random) {
  switch (random.below(16)) {
    case 0:
      return 0.0f;
    case 1:
      return -0.0f;
    case 2:
      return std::bit_cast<float>(uint32_t(random.below(1u << 23)));  // subnormal
    default:
      break;
  }
  const float magnitude = std::ldexp(1.0f + random.uniform(), int(random.below(60)) - 30);
  return random.below(2) == 0 ? magnitude : -magnitude;
}

inline std::vector<float> wild_floats(Random& random, size_t count) {
  std::vector<float> x(count);
  for (float& value : x) value = wild_float(random);
  return x;
}

struct TestMatrix {
  std::vector<std::byte> storage;
  numerics::WeightMatrix matrix;

  std::span<std::byte> data() {
    return std::span(storage).subspan(1, matrix.rows * matrix.row_bytes());
  }
  std::span<std::byte> scales() {
    return std::span(storage).subspan(1 + matrix.rows * matrix.row_bytes(),
                                      matrix.rows * matrix.cols / 32);
  }
  void set(size_t index, float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint16_t half = uint16_t(bits >> 16);
    if (matrix.format == numerics::WeightFormat::F32)
      std::memcpy(data().data() + 4 * index, &bits, 4);
    else
      std::memcpy(data().data() + 2 * index, &half, 2);
  }
};

// All bytes 0, with room for scales in every format.
inline TestMatrix zero_matrix(numerics::WeightFormat format, size_t rows, size_t cols) {
  TestMatrix result;
  result.matrix = {.format = format, .rows = rows, .cols = cols};
  const size_t bytes = rows * result.matrix.row_bytes();
  result.storage.resize(1 + bytes + rows * cols / 32);  // odd: experts lie at any byte of a shard
  result.matrix.data = result.storage.data() + 1;
  if (format == numerics::WeightFormat::Mxfp4)
    result.matrix.scales = result.storage.data() + 1 + bytes;
  return result;
}

inline TestMatrix random_matrix(Random& random, numerics::WeightFormat format, size_t rows,
                                size_t cols) {
  TestMatrix result = zero_matrix(format, rows, cols);
  if (format == numerics::WeightFormat::Mxfp4) {
    for (std::byte& codes : result.data()) codes = std::byte(random.below(256));
    for (std::byte& scale : result.scales())
      scale = std::byte(random.below(20) == 0 ? random.below(3) : 110 + random.below(30));
  } else {
    for (size_t i = 0; i < rows * cols; ++i) result.set(i, wild_float(random));
  }
  return result;
}

}  // namespace deltafin::test
