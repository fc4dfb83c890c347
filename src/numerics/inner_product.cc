#include "numerics/inner_product.h"

#include <cmath>

#include "base/check.h"

namespace deltafin::numerics {

namespace {

constexpr size_t kLanes = 16;

float fold(float (&lanes)[kLanes]) {
  for (size_t half = kLanes / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

float plain(const WeightMatrix& weights, size_t row, const float* x) {
  const std::byte* stored = weights.data + row * weights.row_stride();
  const bool wide = weights.format == WeightFormat::F32;
  float lanes[kLanes] = {};
  for (size_t k = 0; k < weights.cols; ++k) {
    float w = 0;
    widen(weights.format, stored + k * (wide ? 4 : 2), &w, 1);
    float& lane = lanes[wide ? k % kLanes : k % 32 / 2];
    lane = std::fma(w, x[k], lane);
  }
  return fold(lanes);
}

float block_sum(const WeightMatrix& weights, size_t row, const float* x) {
  const std::byte* codes = weights.data + row * weights.row_stride();
  const std::byte* scales = weights.scales + row * (weights.cols / WeightMatrix::kMxfp4Group);
  float lanes[kLanes] = {};
  for (size_t group = 0; group < weights.cols / 8; ++group) {
    float p = 0;
    for (size_t k = 8 * group; k < 8 * group + 8; ++k) {
      const unsigned byte = static_cast<unsigned>(codes[k / 2]);
      p = std::fma(e2m1_value(k % 2 == 0 ? byte & 15 : byte >> 4), x[k], p);
    }
    float& lane = lanes[group % kLanes];
    lane = std::fma(p, e8m0_value(static_cast<unsigned>(scales[group / 4])), lane);
  }
  return fold(lanes);
}

}  // namespace

float e2m1_value(unsigned code) {
  constexpr float kMagnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float magnitude = kMagnitudes[code & 7];
  return (code & 8) != 0 ? -magnitude : magnitude;
}

float e8m0_value(unsigned scale) {
  CHECK(scale < 255);
  return std::ldexp(1.0f, static_cast<int>(scale) - 127);
}

float inner_product(const WeightMatrix& weights, size_t row, const float* x) {
  if (weights.format != WeightFormat::Mxfp4) return plain(weights, row, x);
  CHECK(weights.cols % WeightMatrix::kMxfp4Group == 0);
  return block_sum(weights, row, x);
}

}  // namespace deltafin::numerics
