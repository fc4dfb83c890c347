#include "numerics/rope.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace deltafin::numerics {

namespace {

// pi/2 in three parts of 33, 33 and 53 significant bits: n * kHalfPi1 and n * kHalfPi2 are exact
// for |n| < 2^20, which covers a million positions at frequency 1.
constexpr double kHalfPi1 = 0x1.921fb544p+0;
constexpr double kHalfPi2 = 0x1.0b4611a6p-34;
constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kRoundingMagic = 0x1.8p52;

double polynomial(double x, std::span<const double> falling) {
  double value = falling[0];
  for (const double coefficient : falling.subspan(1)) value = std::fma(value, x, coefficient);
  return value;
}

// Taylor coefficients, highest power first: sine from r^17 to r^3, cosine from r^18 to r^4.
constexpr double kSine[] = {
    1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
    1.0 / 362880,          -1.0 / 5040,          1.0 / 120,        -1.0 / 6};
constexpr double kCosine[] = {
    -1.0 / 6402373705728000, 1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600,
    -1.0 / 3628800,          1.0 / 40320,          -1.0 / 720,         1.0 / 24};

}  // namespace

void canonical_sincos(double x, double& sine, double& cosine) {
  const double shifted = std::fma(x, kTwoOverPi, kRoundingMagic);
  const double n = shifted - kRoundingMagic;
  const uint64_t quadrant = std::bit_cast<uint64_t>(shifted) & 3;
  double r = std::fma(n, -kHalfPi1, x);
  r = std::fma(n, -kHalfPi2, r);
  r = std::fma(n, -kHalfPi3, r);
  const double u = r * r;
  const double s = std::fma(u * r, polynomial(u, kSine), r);
  const double c = std::fma(u * u, polynomial(u, kCosine), std::fma(u, -0.5, 1.0));
  const double swapped_sine = (quadrant & 1) != 0 ? c : s;
  const double swapped_cosine = (quadrant & 1) != 0 ? s : c;
  sine = (quadrant & 2) != 0 ? -swapped_sine : swapped_sine;
  cosine = quadrant == 1 || quadrant == 2 ? -swapped_cosine : swapped_cosine;
}

namespace {

constexpr double kLn2High = 0x1.62e42fefp-1;  // 32 significant bits
constexpr double kLn2Low = 0x1.473de6af278edp-34;

// Natural logarithm of a positive normal double: 2^e m with m near 1, then 2 atanh((m - 1) / (m +
// 1)).
double canonical_log(double x) {
  const uint64_t biased = std::bit_cast<uint64_t>(x) - 0x3fe6a09e667f3bcdull;  // sqrt(1/2)
  const double e = double(int64_t(biased) >> 52);
  const double m = std::bit_cast<double>((biased & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
  const double s = (m - 1.0) / (m + 1.0), u = s * s;
  constexpr double kAtanh[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                               1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
  const double m_log = 2.0 * std::fma(u * s, polynomial(u, kAtanh), s);
  return std::fma(e, kLn2High, std::fma(e, kLn2Low, m_log));
}

// e^x for |x| < 700.
double canonical_exp(double x) {
  const double shifted = std::fma(x, 0x1.71547652b82fep+0, kRoundingMagic);
  const double n = shifted - kRoundingMagic;
  const double r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  double value = 1.0;
  for (int k = 17; k >= 1; --k) value = std::fma(value * r, 1.0 / k, 1.0);
  const uint64_t exponent =
      std::bit_cast<uint64_t>(shifted) - std::bit_cast<uint64_t>(kRoundingMagic);
  return value * std::bit_cast<double>((exponent + 1023) << 52);
}

}  // namespace

void rope_inverse_frequencies(double theta, std::span<float> inverse_frequency) {
  const double log_theta = canonical_log(theta);
  const double half = double(inverse_frequency.size());
  for (size_t i = 0; i < inverse_frequency.size(); ++i)
    inverse_frequency[i] = float(canonical_exp(-(double(i) / half) * log_theta));
}

void rope_angles(uint64_t position, std::span<const float> inverse_frequency,
                 std::span<float> sines, std::span<float> cosines) {
  CHECK(sines.size() == inverse_frequency.size() && cosines.size() == inverse_frequency.size());
  for (size_t i = 0; i < inverse_frequency.size(); ++i) {
    double sine = 0, cosine = 0;
    canonical_sincos(double(position) * double(inverse_frequency[i]), sine, cosine);
    sines[i] = float(sine);
    cosines[i] = float(cosine);
  }
}

}  // namespace deltafin::numerics
