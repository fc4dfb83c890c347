#if defined(__x86_64__)
#include <immintrin.h>
#define DELTAFIN_ISA avx512
#define DELTAFIN_VECTORS "numerics/vector/avx512.inc"
#include "numerics/definition/table.inc"
#endif
