#include <immintrin.h>
#define DELTAFIN_ISA avx512
#define DELTAFIN_VECTORS "numerics/vector/avx512.inc"
#include "mxfp4_order/folded.inc"
