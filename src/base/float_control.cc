#include "base/float_control.h"

#include <cfloat>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated in float");

namespace deltafin {

#if defined(__x86_64__)
namespace {
// MXCSR: bit 6 denormals-are-zero, bits 13-14 rounding mode (00 nearest), bit 15 flush-to-zero.
constexpr uint32_t kDaz = 1u << 6, kRounding = 3u << 13, kFtz = 1u << 15;
}  // namespace

void set_canonical_float_control() { _mm_setcsr(_mm_getcsr() & ~(kDaz | kRounding | kFtz)); }

bool float_control_is_canonical() { return (_mm_getcsr() & (kDaz | kRounding | kFtz)) == 0; }

#elif defined(__aarch64__)
namespace {
// FPCR: bit 19 FZ16, bits 22-23 rounding mode (00 nearest), bit 24 flush-to-zero, bit 25 DN.
constexpr uint64_t kFz16 = 1u << 19, kRounding = 3u << 22, kFz = 1u << 24;

uint64_t read_fpcr() {
  uint64_t value = 0;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
}  // namespace

void set_canonical_float_control() {
  const uint64_t value = read_fpcr() & ~(kFz16 | kRounding | kFz);
  asm volatile("msr fpcr, %0" : : "r"(value));
}

bool float_control_is_canonical() { return (read_fpcr() & (kFz16 | kRounding | kFz)) == 0; }
#else
#error "say how this processor's floating-point control register is read"
#endif

}  // namespace deltafin
