// Endless bytes for tensors that lie nowhere: each byte is a pure function of a key and of its
// position, so that any stretch can be made on its own, in any order and by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "checkpoint/tensor.h"

namespace deltafin::test {

// Which values the noise takes: each 32-bit word is (random & mask) + base. A sum of fields that do
// not touch one another is all that the floats below need.
struct NoiseForm {
  uint32_t mask = 0xFFFF'FFFF;
  uint32_t base = 0;
};

struct Noise {
  uint32_t key_low = 0, key_high = 0;
  NoiseForm form;
};
// `name` is what tells one tensor from all others.
Noise noise_of(std::string_view name, NoiseForm form);

// F32 or BF16 around zero: either sign, four binades, log-uniform over them and uniform within
// each. The standard deviation is the power of two nearest to `deviation` that this allows, so less
// than a factor of 1.5 off.
NoiseForm signed_floats(double deviation, checkpoint::DType dtype);
// From 0.5 up to 2, and from -2 up to -0.5.
NoiseForm positive_floats(checkpoint::DType dtype);
NoiseForm negative_floats(checkpoint::DType dtype);
// Two neighbouring E8M0 scales that give weights of any E2M1 code about this standard deviation.
NoiseForm mxfp4_scales(double deviation);

// Fills `into` with the bytes from `offset` on. Tensors are shorter than 2^34 bytes.
void make_noise(const Noise& noise, uint64_t offset, std::span<std::byte> into);

}  // namespace deltafin::test
