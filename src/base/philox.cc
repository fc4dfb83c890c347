#include "base/philox.h"

#include "base/check.h"

namespace deltafin {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {uint32_t(product1 >> 32) ^ counter[1] ^ key[0], uint32_t(product1),
               uint32_t(product0 >> 32) ^ counter[3] ^ key[1], uint32_t(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

uint32_t Random::next_u32() {
  if (used_ == 4) {
    block_ = philox4x32({uint32_t(counter_), uint32_t(counter_ >> 32), 0, 0}, key_);
    ++counter_;
    used_ = 0;
  }
  return block_[used_++];
}

uint64_t Random::next_u64() {
  // Two statements: the operands of one expression could be evaluated in either order, and
  // compilers do differ.
  const uint64_t high = next_u32();
  return high << 32 | next_u32();
}

uint64_t Random::below(uint64_t bound) {
  CHECK(bound > 0);
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{next_u64()} * bound) >> 64);
}

}  // namespace deltafin
