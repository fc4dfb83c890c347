// Rotary position embedding: the angles. The rotation itself is Kernels::rotate.
#pragma once

#include <cstdint>
#include <span>

namespace deltafin::numerics {

// Canonical double-precision sine and cosine, |x| <= 2^27: Cody-Waite reduction by pi/2 in three
// parts, then Taylor polynomials on |r| <= pi/4. Only + - * and fma, so the bits are the same
// everywhere.
void canonical_sincos(double x, double& sine, double& cosine);

// inverse_frequency[i] = f32(theta^(-2i / rotary_dim)), from double.
void rope_inverse_frequencies(double theta, std::span<float> inverse_frequency);

// sines[i], cosines[i] of position * inverse_frequency[i]: the angle in double, the results rounded
// to f32 once.
void rope_angles(uint64_t position, std::span<const float> inverse_frequency,
                 std::span<float> sines, std::span<float> cosines);

}  // namespace deltafin::numerics
