#if defined(__x86_64__)
#define DELTAFIN_ISA avx512
#include "numerics/definition/table.inc"
#endif
