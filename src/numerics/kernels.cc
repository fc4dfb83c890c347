#include "numerics/kernels.h"

#include <vector>

namespace deltafin::numerics {

namespace baseline {
extern const Kernels kKernels;
}
#if defined(__aarch64__)
namespace neon {
extern const Kernels kKernels;
}
#endif
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
#endif

std::span<const Kernels> kernel_variants() {
  static const std::vector<Kernels> usable = [] {
    std::vector<Kernels> variants{baseline::kKernels};
#if defined(__aarch64__)
    variants.push_back(neon::kKernels);  // every AArch64 has it
#endif
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      variants.push_back(avx2::kKernels);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      variants.push_back(avx512::kKernels);
#endif
    return variants;
  }();
  return usable;
}

const Kernels* find_kernels(std::string_view name) {
  for (const Kernels& variant : kernel_variants())
    if (name == variant.name) return &variant;
  return nullptr;
}

const Kernels& best_kernels() { return kernel_variants().back(); }

}  // namespace deltafin::numerics
