// The definition of the inner products, one plain loop each. Slow; kernels must return the same
// bits.
#pragma once

#include <cstddef>

#include "numerics/weights.h"

namespace deltafin::numerics {

// dot(W[row, :], x) in the canonical order of the weights' format. Sixteen lanes start at +0 and
// fold 8, 4, 2, 1 at the end; lanes that own no element stay +0.
//   F32    lane k mod 16 takes element k:                lane = fma(w, x, lane), k rising
//   Bf16   lane (k mod 32) / 2 takes element k:          lane = fma(w, x, lane), k rising
//   Mxfp4  lane (k / 8) mod 16 takes the 8 elements of group k / 8:
//            p = fma chain from +0 of code x, rising;    lane = fma(p, 2^(scale - 127), lane)
// x [cols], in natural order.
float inner_product(const WeightMatrix& weights, size_t row, const float* x);

// The value of one E2M1 code 0..15: sign bit, then 0, 0.5, 1, 1.5, 2, 3, 4, 6. Code 8 is -0.
float e2m1_value(unsigned code);
// 2^(scale - 127); 0 is the subnormal 2^-127. 255 (NaN) must not get here.
float e8m0_value(unsigned scale);

}  // namespace deltafin::numerics
