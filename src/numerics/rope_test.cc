#include "numerics/rope.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "numerics/kernels.h"

namespace deltafin::numerics {
namespace {

TEST(Sincos, AgreesWithTheMathLibraryInDouble) {
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = double(i) * 5.2431 + 1e-7 * i;  // to a million
    double sine = 0, cosine = 0;
    canonical_sincos(x, sine, cosine);
    worst = std::max({worst, std::fabs(sine - std::sin(x)), std::fabs(cosine - std::cos(x))});
    canonical_sincos(-x, sine, cosine);
    worst = std::max({worst, std::fabs(sine + std::sin(x)), std::fabs(cosine - std::cos(x))});
  }
  EXPECT_LE(worst, 4e-16);
}

TEST(Sincos, IsExactAtZero) {
  double sine = 1, cosine = 0;
  canonical_sincos(0, sine, cosine);
  EXPECT_EQ(sine, 0);
  EXPECT_EQ(cosine, 1);
}

TEST(Rope, FrequenciesAreTheCorrectlyRoundedPowers) {
  for (const double theta : {10'000.0, 1'000'000.0, 10'000'000.0}) {
    for (const size_t half : {16u, 32u, 64u}) {
      std::vector<float> found(half);
      rope_inverse_frequencies(theta, found);
      EXPECT_EQ(found[0], 1.0f);
      for (size_t i = 0; i < half; ++i)
        EXPECT_EQ(found[i], float(std::pow(theta, -double(i) / double(half)))) << theta << " " << i;
    }
  }
}

TEST(Rope, RotatesPairsOfTheTwoHalves) {
  const std::vector<float> x = {1, 2, 3, 4};
  const float sines[] = {1, 0}, cosines[] = {0, 1};
  std::vector<float> y(4);
  for (const Kernels& kernels : kernel_variants()) {
    kernels.rotate(x.data(), sines, cosines, y.data(), 4);
    EXPECT_EQ(y, (std::vector<float>{-3, 2, 1, 4})) << kernels.name;
  }
}

TEST(Rope, AnglesAreRoundedOnceFromDouble) {
  const std::vector<float> frequency = {1.0f, 0.5f};
  std::vector<float> sines(2), cosines(2);
  rope_angles(1'000'003, frequency, sines, cosines);
  EXPECT_EQ(sines[0], float(std::sin(1'000'003.0)));
  EXPECT_EQ(cosines[1], float(std::cos(500'001.5)));
}

}  // namespace
}  // namespace deltafin::numerics
