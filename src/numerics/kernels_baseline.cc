#define DELTAFIN_ISA baseline
#include "numerics/definition/table.inc"
