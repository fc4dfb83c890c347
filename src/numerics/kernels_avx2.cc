#if defined(__x86_64__)
#define DELTAFIN_ISA avx2
#include "numerics/definition/table.inc"
#endif
