#include "soak/noise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace deltafin::test {

namespace {

using checkpoint::DType;

static_assert(std::endian::native == std::endian::little, "words are written as they are");

constexpr uint64_t kWordBytes = sizeof(uint32_t);

// The fields of a BF16, which are those of the upper half of an F32.
constexpr uint32_t kSign = 0x8000, kMantissa = 0x007F, kExponentUnit = 0x0080;
constexpr uint32_t kExponentBias = 127;

NoiseForm float_form(uint32_t mask, uint32_t base, DType dtype) {
  CHECK(dtype == DType::F32 || dtype == DType::BF16);
  if (dtype == DType::F32) return {.mask = mask << 16 | 0xFFFF, .base = base << 16};
  return {.mask = mask << 16 | mask, .base = base << 16 | base};
}

// A hash of 32 bits (shifts and factors of "lowbias32" by Chris Wellons), with a second half of the
// key in its middle: otherwise every tensor would be a later stretch of every other.
[[gnu::always_inline]] inline uint32_t word_at(const Noise& noise, uint32_t index) {
  uint32_t x = index * 0x9E37'79B1u + noise.key_low;
  x ^= x >> 16;
  x *= 0x7FEB'352Du;
  x ^= (x >> 15) ^ noise.key_high;
  x *= 0x846C'A68Bu;
  x ^= x >> 16;
  return (x & noise.form.mask) + noise.form.base;
}

[[gnu::always_inline]] inline void write_words(Noise noise, uint32_t first, std::byte* out,
                                               uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t word = word_at(noise, first + uint32_t(i));
    std::memcpy(out + i * kWordBytes, &word, kWordBytes);
  }
}

void write_words_anywhere(const Noise& noise, uint32_t first, std::byte* out, uint64_t count) {
  write_words(noise, first, out, count);
}

#if defined(__x86_64__)
// Products of 32-bit lanes are one instruction from AVX2 on, and eight before.
[[gnu::target("avx2")]] void write_words_avx2(const Noise& noise, uint32_t first, std::byte* out,
                                              uint64_t count) {
  write_words(noise, first, out, count);
}
const auto write_fast = __builtin_cpu_supports("avx2") ? write_words_avx2 : write_words_anywhere;
#else
const auto write_fast = write_words_anywhere;
#endif

}  // namespace

Noise noise_of(std::string_view name, NoiseForm form) {
  uint64_t hash = 0xCBF2'9CE4'8422'2325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ uint8_t(c)) * 0x100'0000'01B3u;
  // Its upper bits hardly see the last letters, by which most names differ.
  hash ^= hash >> 32;
  hash *= 0x9E37'79B9'7F4A'7C15u;
  hash ^= hash >> 29;
  return {.key_low = uint32_t(hash), .key_high = uint32_t(hash >> 32), .form = form};
}

NoiseForm signed_floats(double deviation, DType dtype) {
  // The mean square of (1 + u) 2^e, for u uniform and e = 0, 1, 2 or 3, is 7/3 x (1 + 4 + 16 +
  // 64)/4.
  const double unit = std::sqrt(7.0 / 3.0 * 85.0 / 4.0);
  const auto exponent = std::lround(std::log2(deviation / unit)) + long{kExponentBias};
  CHECK(exponent > 0 && exponent < 250);
  return float_form(kSign | 3 * kExponentUnit | kMantissa, uint32_t(exponent) * kExponentUnit,
                    dtype);
}

NoiseForm positive_floats(DType dtype) {
  return float_form(kExponentUnit | kMantissa, (kExponentBias - 1) * kExponentUnit, dtype);
}

NoiseForm negative_floats(DType dtype) {
  return float_form(kExponentUnit | kMantissa, kSign | (kExponentBias - 1) * kExponentUnit, dtype);
}

NoiseForm mxfp4_scales(double deviation) {
  // The mean square of 0, 0.5, 1, 1.5, 2, 3, 4 and 6, times that of 1 and 2.
  const double unit = std::sqrt(68.5 / 8.0 * 5.0 / 2.0);
  const auto scale = std::lround(std::log2(deviation / unit)) + long{kExponentBias};
  CHECK(scale > 0 && scale < 250);
  return {.mask = 0x0101'0101, .base = uint32_t(scale) * 0x0101'0101u};
}

void make_noise(const Noise& noise, uint64_t offset, std::span<std::byte> into) {
  CHECK(offset + into.size() <= uint64_t{UINT32_MAX} * kWordBytes);
  if (into.empty()) return;
  uint32_t index = uint32_t(offset / kWordBytes);
  const auto write_part = [&](uint64_t skipped, uint64_t size) {
    const uint32_t word = word_at(noise, index);
    std::memcpy(into.data(), reinterpret_cast<const std::byte*>(&word) + skipped, size);
    into = into.subspan(size);
    ++index;
  };
  if (const uint64_t skipped = offset % kWordBytes; skipped != 0)
    write_part(skipped, std::min<uint64_t>(kWordBytes - skipped, into.size()));
  const uint64_t count = into.size() / kWordBytes;
  write_fast(noise, index, into.data(), count);
  into = into.subspan(count * kWordBytes);
  index += uint32_t(count);
  if (!into.empty()) write_part(0, into.size());
}

}  // namespace deltafin::test
