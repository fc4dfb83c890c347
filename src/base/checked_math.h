// Arithmetic on sizes that come from files: an overflow is a missing value, never a wrap.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace deltafin {

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> checked_multiply(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The number of elements of a shape; 1 for a scalar (no axes).
inline std::optional<uint64_t> checked_product(std::span<const uint64_t> shape) {
  uint64_t product = 1;
  for (const uint64_t axis : shape) {
    if (__builtin_mul_overflow(product, axis, &product)) return std::nullopt;
  }
  return product;
}

// The smallest multiple of `unit` (a power of two) that is not below `value`; the caller has proven
// that it fits into 64 bits.
constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

}  // namespace deltafin
