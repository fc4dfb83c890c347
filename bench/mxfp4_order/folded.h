// MXFP4 products in both orders that docs/decisions/0007-mxfp4-block-sum.md weighs.
#pragma once

#include <cstddef>

#include "numerics/weights.h"

namespace deltafin::numerics {

using OrderedProduct = void (*)(const WeightMatrix& weights, const float* packed,
                                size_t packed_stride, size_t column_count, float* y,
                                size_t y_stride);
struct OrderedProducts {
  OrderedProduct block_sum, folded;
};

namespace avx2 {
extern const OrderedProducts kOrders;
}
namespace avx512 {
extern const OrderedProducts kOrders;
}

}  // namespace deltafin::numerics
