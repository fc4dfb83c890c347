#include <immintrin.h>
#define DELTAFIN_ISA avx2
#define DELTAFIN_VECTORS "numerics/vector/avx2.inc"
#include "mxfp4_order/folded.inc"
