#if defined(__aarch64__)
#include <arm_neon.h>
#define DELTAFIN_ISA neon
#define DELTAFIN_VECTORS "numerics/vector/neon.inc"
#include "numerics/definition/table.inc"
#endif
