#if defined(__x86_64__)
#include <immintrin.h>
#define DELTAFIN_ISA avx2
#define DELTAFIN_VECTORS "numerics/vector/avx2.inc"
#include "numerics/definition/table.inc"
#endif
