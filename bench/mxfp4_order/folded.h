// MXFP4 products in both orders that docs/decisions/0007-mxfp4-block-sum.md weighs.
#pragma once

#include "numerics/kernels.h"

namespace deltafin::numerics {

struct OrderedProducts {
  decltype(Kernels::product) block_sum, folded;
};

namespace avx2 {
extern const OrderedProducts kOrders;
}
namespace avx512 {
extern const OrderedProducts kOrders;
}

}  // namespace deltafin::numerics
