#include "numerics/weights.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace deltafin::numerics {

static_assert(std::endian::native == std::endian::little, "weights are used as they lie on disk");

void widen(WeightFormat format, const std::byte* stored, float* out, size_t count) {
  CHECK(format != WeightFormat::Mxfp4);
  if (format == WeightFormat::F32) {
    std::memcpy(out, stored, count * sizeof(float));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    uint16_t half = 0;
    std::memcpy(&half, stored + 2 * i, sizeof half);
    out[i] = std::bit_cast<float>(uint32_t{half} << 16);
  }
}

}  // namespace deltafin::numerics
