#include "soak/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

namespace deltafin::test {
namespace {

using checkpoint::DType;

std::vector<std::byte> noise_bytes(const Noise& noise, uint64_t offset, size_t size) {
  std::vector<std::byte> bytes(size);
  make_noise(noise, offset, bytes);
  return bytes;
}

std::vector<float> bf16_values(NoiseForm form, size_t count) {
  std::vector<uint16_t> stored(count);
  make_noise(noise_of("a tensor", form), 0, std::as_writable_bytes(std::span(stored)));
  std::vector<float> values;
  for (const uint16_t value : stored) values.push_back(std::bit_cast<float>(uint32_t(value) << 16));
  return values;
}

std::vector<float> f32_values(NoiseForm form, size_t count) {
  std::vector<float> values(count);
  make_noise(noise_of("a tensor", form), 0, std::as_writable_bytes(std::span(values)));
  return values;
}

double mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / double(values.size());
}

double deviation(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double(value) * value;
  return std::sqrt(sum / double(values.size()));
}

TEST(Noise, IsTheSameWhereverAReadBeginsAndEnds) {
  const Noise noise = noise_of("a tensor", signed_floats(0.01, DType::BF16));
  const std::vector<std::byte> whole = noise_bytes(noise, 0, 300);
  for (size_t begin = 0; begin < 70; ++begin)
    for (size_t end = begin; end < 300; end += 7)
      ASSERT_EQ(noise_bytes(noise, begin, end - begin),
                std::vector(whole.begin() + ptrdiff_t(begin), whole.begin() + ptrdiff_t(end)))
          << begin << " to " << end;
}

// Also says that no processor makes other bytes, as recorded digests of whole runs hang on them.
TEST(Noise, HasTheseBytesOnEveryMachine) {
  uint32_t words[3] = {};
  make_noise(noise_of("a tensor", {}), uint64_t{1} << 33, std::as_writable_bytes(std::span(words)));
  EXPECT_THAT(words, testing::ElementsAre(979'923'703u, 3'761'253'273u, 2'688'565'876u));
}

// The lower half of a key decides where a sequence begins, and all begin somewhere in 2^32.
TEST(Noise, OfTwoTensorsIsNoLaterStretchOfTheOther) {
  constexpr uint32_t kLater = 1000;
  const Noise one = {.key_low = 5, .key_high = 1, .form = {}};
  const Noise other = {.key_low = 5 + kLater * 0x9E37'79B1u, .key_high = 2, .form = {}};
  std::set<std::vector<std::byte>> pieces;
  for (const Noise& noise : {one, other})
    for (uint64_t offset = 0; offset < 16 * kLater; offset += 4)
      pieces.insert(noise_bytes(noise, offset, 8));
  EXPECT_EQ(pieces.size(), 8 * kLater);
}

TEST(Noise, OfSignedFloatsHasTheDeviationAskedForAndNoMean) {
  for (const double wanted : {1.0, 0.5, 0.0118, 0.00902}) {
    const std::vector<float> bf16 = bf16_values(signed_floats(wanted, DType::BF16), 100'000);
    const std::vector<float> f32 = f32_values(signed_floats(wanted, DType::F32), 100'000);
    for (const std::vector<float>& values : {bf16, f32}) {
      EXPECT_LT(deviation(values), 1.5 * wanted);
      EXPECT_GT(deviation(values), wanted / 1.5);
      EXPECT_LT(std::fabs(mean(values)), 0.02 * wanted);
    }
  }
}

TEST(Noise, OfFloatsWithOneSignKeepsToIt) {
  for (const float value : bf16_values(positive_floats(DType::BF16), 10'000))
    ASSERT_TRUE(value >= 0.5f && value < 2) << value;
  for (const float value : f32_values(negative_floats(DType::F32), 10'000))
    ASSERT_TRUE(value <= -0.5f && value > -2) << value;
}

TEST(Noise, OfScalesGivesPackedWeightsTheDeviationAskedFor) {
  const double wanted = 0.0167;
  constexpr double kCodes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::set<int> scales;
  double sum = 0;
  for (const std::byte scale : noise_bytes(noise_of("scales", mxfp4_scales(wanted)), 0, 1000)) {
    scales.insert(std::to_integer<int>(scale));
    for (const double code : kCodes)
      sum += std::pow(std::ldexp(code, std::to_integer<int>(scale) - 127), 2) / 8 / 1000;
  }
  EXPECT_EQ(scales.size(), 2u);
  EXPECT_LT(std::sqrt(sum), 1.5 * wanted);
  EXPECT_GT(std::sqrt(sum), wanted / 1.5);
}

}  // namespace
}  // namespace deltafin::test
