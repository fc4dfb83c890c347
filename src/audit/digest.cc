#include "audit/digest.h"

#include <bit>

namespace deltafin::audit {

static_assert(std::endian::native == std::endian::little,
              "the digest is over little-endian floats");

void LogitsDigest::add(std::span<const float> logits) {
  sha_.add(std::as_bytes(logits));
  ++row_count_;
}

}  // namespace deltafin::audit
