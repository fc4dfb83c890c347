// Philox4x32-10: a counter-based generator. The same (key, counter) gives the same numbers on every
// machine and in every order of calls, which is what seeded sampling and replayable tests need.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC11).
#pragma once

#include <array>
#include <cstdint>

namespace deltafin {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A stream of random numbers for tests and simulations, reproducible from one seed.
class Random {
 public:
  explicit Random(uint64_t seed) : key_{uint32_t(seed), uint32_t(seed >> 32)} {}

  uint32_t next_u32();
  // High half first.
  uint64_t next_u64();
  // Uniform in [0, bound); bound > 0. The bias for bounds below 2^32 is under 2^-32.
  uint64_t below(uint64_t bound);
  // Uniform in [0, 1), 24 bits.
  float uniform() { return float(next_u32() >> 8) * 0x1p-24f; }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> block_{};
  uint64_t counter_ = 0;
  unsigned used_ = 4;
};

}  // namespace deltafin
