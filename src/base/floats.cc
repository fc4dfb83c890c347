#include "base/floats.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace deltafin {

namespace {
constexpr size_t kHugePage = size_t{2} << 20;
}

Floats::Floats(size_t count) : size_(count) {
  if (count == 0) return;
  const size_t bytes = count * sizeof(float);
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  // aligned_alloc wants whole multiples of the alignment.
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  // Advice: where there are no huge pages the memory is as good, only slower.
  if (bytes >= kHugePage) ::madvise(memory, rounded, MADV_HUGEPAGE);
  floats_.reset(static_cast<float*>(memory));
}

void Floats::Free::operator()(float* p) const { std::free(p); }

}  // namespace deltafin
