#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "numerics/inner_product.h"
#include "numerics/kernels.h"
#include "support/same_bits.h"
#include "support/wild_values.h"

namespace deltafin::numerics {
namespace {

using test::expect_same_bits;
using test::random_matrix;
using test::TestMatrix;
using test::wild_floats;

constexpr WeightFormat kFormats[] = {WeightFormat::F32, WeightFormat::Bf16, WeightFormat::Mxfp4};

std::vector<float> run_product(const Kernels& kernels, const WeightMatrix& m,
                               const std::vector<float>& x, size_t columns) {
  const size_t stride = packed_size(m.cols);
  std::vector<float> packed(columns * stride, std::numeric_limits<float>::quiet_NaN());
  for (size_t c = 0; c < columns; ++c)
    kernels.pack_column(m.format, x.data() + c * m.cols, m.cols, packed.data() + c * stride);
  std::vector<float> y(columns * m.rows, -1);
  kernels.product(m, packed.data(), stride, columns, y.data(), m.rows);
  return y;
}

// Every variant against the definition, which is the slow one and runs once.
void compare_with_definition(const WeightMatrix& m, const std::vector<float>& x,
                             const std::string& what = "") {
  const size_t columns = x.size() / m.cols;
  std::vector<float> expected(columns * m.rows);
  for (size_t c = 0; c < columns; ++c)
    for (size_t r = 0; r < m.rows; ++r)
      expected[c * m.rows + r] = inner_product(m, r, x.data() + c * m.cols);
  for (const Kernels& kernels : kernel_variants())
    expect_same_bits(run_product(kernels, m, x, columns), expected,
                     std::string(kernels.name) + " " + std::to_string(m.rows) + "x" +
                         std::to_string(m.cols) + " columns " + std::to_string(columns) + what);
}

void compare_with_definition(WeightFormat format, size_t rows, size_t cols, size_t columns) {
  Random random(rows * 1000003 + cols * 101 + columns);
  const TestMatrix test = random_matrix(random, format, rows, cols);
  compare_with_definition(test.matrix, wild_floats(random, columns * cols));
}

TEST(Product, EqualsTheDefinitionForEveryVariantAndOddShape) {
  for (const WeightFormat format : {WeightFormat::F32, WeightFormat::Bf16}) {
    for (const size_t cols : {1u, 2u, 15u, 16u, 17u, 31u, 32u, 33u, 63u, 95u, 130u})
      for (const size_t columns : {1u, 2u, 3u, 4u, 5u, 9u})
        compare_with_definition(format, 3, cols, columns);
  }
  for (const size_t cols : {32u, 64u, 96u, 128u, 160u, 288u})
    for (const size_t columns : {1u, 3u, 4u, 7u})
      compare_with_definition(WeightFormat::Mxfp4, 5, cols, columns);
}

// Shapes at the edges of what the vector code does together: tiles of rows and of columns, blocks
// of 64 rows and 64 columns, stretches of 512 elements.
TEST(Product, EqualsTheDefinitionAtTheEdgesOfTiles) {
  for (const WeightFormat format : kFormats) {
    for (const size_t rows : {1u, 2u, 4u, 7u, 8u, 9u, 12u})
      for (const size_t columns : {1u, 2u, 4u, 5u, 6u, 7u, 24u, 25u, 26u, 27u})
        compare_with_definition(format, rows, 160, columns);
    for (const size_t cols : {480u, 512u, 544u, 1024u, 1056u})
      for (const size_t columns : {1u, 6u, 8u, 31u})
        compare_with_definition(format, 10, cols, columns);
    for (const size_t rows : {63u, 64u, 65u, 72u, 131u})
      for (const size_t columns : {1u, 3u, 64u, 65u})
        compare_with_definition(format, rows, 544, columns);
  }
}

// Short rows are taken a page apart, in blocks whose size depends on their length: around one and
// two of them, and with less than a page in all.
TEST(Product, EqualsTheDefinitionForShortRowsAPageApart) {
  for (const WeightFormat format : kFormats)
    for (const size_t cols : {96u, 512u, 1024u})
      for (const size_t rows : {32u, 39u, 40u, 81u, 173u})
        for (const size_t columns : {1u, 4u}) compare_with_definition(format, rows, cols, columns);
}

// Three stretches and every length of a tail behind them.
TEST(Product, EqualsTheDefinitionForEveryTailBehindAStretch) {
  for (const size_t columns : {1u, 30u}) {
    for (size_t tail = 0; tail < 16; ++tail)
      compare_with_definition(WeightFormat::F32, 5, 1040 + tail, columns);
    for (size_t tail = 0; tail < 32; ++tail)
      compare_with_definition(WeightFormat::Bf16, 5, 1056 + tail, columns);
    for (size_t tail = 0; tail < 128; tail += 32)
      compare_with_definition(WeightFormat::Mxfp4, 5, 1152 + tail, columns);
  }
}

TEST(ProductFull, EqualsTheDefinitionUpTo257Columns) {
  for (size_t columns = 1; columns <= 257; ++columns) {
    compare_with_definition(WeightFormat::F32, 20, 551, columns);
    compare_with_definition(WeightFormat::Bf16, 21, 1101, columns);
    compare_with_definition(WeightFormat::Mxfp4, 19, 672, columns);
  }
}

TEST(Product, OfABatchEqualsTheProductOfEachColumnAlone) {
  Random random(7);
  for (const Kernels& kernels : kernel_variants()) {
    for (const WeightFormat format : kFormats) {
      const TestMatrix test = random_matrix(random, format, 9, 224);
      const std::vector<float> x = wild_floats(random, 33 * 224);
      const std::vector<float> together = run_product(kernels, test.matrix, x, 33);
      for (size_t c = 0; c < 33; ++c) {
        const std::vector<float> column(x.begin() + ptrdiff_t(c * 224),
                                        x.begin() + ptrdiff_t((c + 1) * 224));
        const std::vector<float> alone = run_product(kernels, test.matrix, column, 1);
        EXPECT_EQ(std::memcmp(alone.data(), together.data() + c * 9, 9 * sizeof(float)), 0)
            << kernels.name << " column " << c;
      }
    }
  }
}

// Columns of subnormals and zeros of both signs only, for among larger numbers they do not reach
// the bits of a sum. One shape each for the direct tiles, the panel and its second stretch; all
// with a tail.
TEST(Product, KeepsSubnormalsAndSignedZeros) {
  Random random(23);
  for (const WeightFormat format : kFormats) {
    for (const size_t columns : {1u, 3u, 30u}) {
      for (const float unit : {0x1p-149f, 0x1p-140f, 0.0f}) {
        TestMatrix test = random_matrix(random, format, 9, 672);
        for (std::byte& scale : test.scales()) scale = std::byte(125 + random.below(3));
        if (format != WeightFormat::Mxfp4)
          for (size_t i = 0; i < test.matrix.rows * test.matrix.cols; ++i)
            test.set(i, random.uniform() * 4 - 2);
        std::vector<float> x(columns * test.matrix.cols);
        for (float& value : x) value = unit * (float(random.below(64)) - 32);
        compare_with_definition(test.matrix, x, ", unit " + std::to_string(unit));
      }
    }
  }
}

// Every lane in use underflows to -0. A padded fma(0, 0, -0) would turn its lane, and so the
// result, into +0. Whole blocks first, so that all lanes are in use, then tails of every kind.
TEST(Product, LeavesLanesWithoutElementsAlone) {
  for (const Kernels& kernels : kernel_variants()) {
    for (const WeightFormat format : kFormats) {
      const size_t block = format == WeightFormat::F32    ? 16
                           : format == WeightFormat::Bf16 ? 32
                                                          : 128;
      const size_t step = format == WeightFormat::Mxfp4 ? 32 : 1;
      for (size_t cols = block; cols < 2 * block; cols += step) {
        TestMatrix test = test::zero_matrix(format, 5, cols);
        if (format == WeightFormat::Mxfp4) {
          std::ranges::fill(test.data(), std::byte{0x99});    // -0.5 twice
          std::ranges::fill(test.scales(), std::byte{0x00});  // 2^-127
        } else {
          for (size_t i = 0; i < 5 * cols; ++i) test.set(i, -1e-30f);
        }
        for (const size_t columns : {1u, 2u, 30u})
          for (const float y : run_product(kernels, test.matrix,
                                           std::vector<float>(columns * cols, 1e-30f), columns))
            ASSERT_EQ(std::bit_cast<uint32_t>(y), 0x80000000u)
                << kernels.name << " cols " << cols << " columns " << columns;
      }
    }
    for (size_t n = 16; n < 32; ++n) {
      const std::vector<float> a(n, -1e-30f), b(n, 1e-30f);
      EXPECT_EQ(std::bit_cast<uint32_t>(kernels.dot(a.data(), b.data(), n)), 0x80000000u)
          << kernels.name << " n " << n;
    }
  }
}

TEST(Product, KeepsScaleExtremes) {
  // One group of 32 at each extreme: codes all +0.5 (1) against x = 1 give 16 x 2^(s - 127).
  for (const Kernels& kernels : kernel_variants()) {
    for (const unsigned scale : {0u, 1u, 2u, 127u, 250u, 254u}) {
      TestMatrix test = test::zero_matrix(WeightFormat::Mxfp4, 1, 32);
      std::ranges::fill(test.data(), std::byte{0x11});
      std::ranges::fill(test.scales(), std::byte(scale));
      const float y = run_product(kernels, test.matrix, std::vector<float>(32, 1.0f), 1)[0];
      EXPECT_EQ(y, std::ldexp(16.0f, int(scale) - 127)) << kernels.name << " scale " << scale;
    }
  }
}

// All scales of a matrix are extreme in the same direction: one ordinary scale would drown the
// small ones. The largest meet columns so small that the sums stay finite, although a code times
// its scale would not.
TEST(Product, EqualsTheDefinitionAtScaleExtremes) {
  Random random(29);
  for (const size_t columns : {1u, 2u, 3u, 30u}) {
    for (const unsigned least : {0u, 253u}) {
      TestMatrix test = random_matrix(random, WeightFormat::Mxfp4, 9, 672);
      for (std::byte& scale : test.scales())
        scale = std::byte(least + random.below(least == 0 ? 3 : 2));
      std::vector<float> x = wild_floats(random, columns * 672);
      if (least > 0)
        for (float& value : x) value *= 0x1p-60f;
      for (const float y : run_product(kernel_variants()[0], test.matrix, x, columns))
        ASSERT_TRUE(std::isfinite(y));
      compare_with_definition(test.matrix, x, ", scales from " + std::to_string(least));
    }
  }
}

TEST(Product, DecodesEveryCodeInBothNibbles) {
  for (const Kernels& kernels : kernel_variants()) {
    for (unsigned code = 0; code < 16; ++code) {
      for (size_t column = 0; column < 32; ++column) {
        std::vector<std::byte> storage(17, std::byte{0});
        storage[16] = std::byte{127};
        storage[column / 2] = std::byte(column % 2 == 0 ? code : code << 4);
        WeightMatrix m{.format = WeightFormat::Mxfp4, .rows = 1, .cols = 32};
        m.data = storage.data();
        m.scales = storage.data() + 16;
        std::vector<float> x(32, 0.0f);
        x[column] = 1;
        EXPECT_EQ(run_product(kernels, m, x, 1)[0], e2m1_value(code)) << code << " at " << column;
      }
    }
  }
}

TEST(ProductTransposed, IsAChainOverRowsFromPlusZero) {
  Random random(11);
  constexpr size_t kRows = 77;
  for (const WeightFormat format : {WeightFormat::F32, WeightFormat::Bf16}) {
    for (const size_t cols : {1u, 16u, 37u, 96u, 107u}) {
      const TestMatrix test = random_matrix(random, format, kRows, cols);
      for (const size_t count : {1u, 2u, 4u, 7u}) {
        const std::vector<float> coefficients = wild_floats(random, count * (kRows + 2));
        std::vector<float> expected(count * cols, 0.0f), row(cols);
        for (size_t r = 0; r < kRows; ++r) {
          widen(format, test.matrix.data + r * test.matrix.row_bytes(), row.data(), cols);
          for (size_t i = 0; i < count; ++i)
            for (size_t c = 0; c < cols; ++c)
              expected[i * cols + c] =
                  std::fma(row[c], coefficients[i * (kRows + 2) + r], expected[i * cols + c]);
        }
        for (const Kernels& kernels : kernel_variants()) {
          std::vector<float> found(count * cols, -1.0f);
          kernels.product_transposed(test.matrix, coefficients.data(), kRows + 2, count,
                                     found.data(), cols);
          expect_same_bits(found, expected, kernels.name);
        }
      }
    }
  }
}

TEST(Dot, EqualsTheDefinitionAtEveryLength) {
  Random random(3);
  for (const Kernels& kernels : kernel_variants()) {
    for (size_t n = 0; n <= 300; ++n) {
      const std::vector<float> a = wild_floats(random, n + 1), b = wild_floats(random, n + 1);
      WeightMatrix m{.format = WeightFormat::F32, .rows = 1, .cols = n};
      m.data = reinterpret_cast<const std::byte*>(a.data());
      const float expected = inner_product(m, 0, b.data());
      ASSERT_EQ(std::bit_cast<uint32_t>(kernels.dot(a.data(), b.data(), n)),
                std::bit_cast<uint32_t>(expected))
          << kernels.name << " n " << n;
    }
  }
}

TEST(Sum, TakesSixteenLanesByIndex) {
  Random random(5);
  for (const Kernels& kernels : kernel_variants()) {
    for (size_t n = 0; n <= 100; ++n) {
      const std::vector<float> x = wild_floats(random, n + 1);
      float lanes[16] = {};
      for (size_t i = 0; i < n; ++i) lanes[i % 16] += x[i];
      for (size_t half = 8; half > 0; half /= 2)
        for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
      ASSERT_EQ(std::bit_cast<uint32_t>(kernels.sum(x.data(), n)),
                std::bit_cast<uint32_t>(lanes[0]))
          << kernels.name << " n " << n;
    }
  }
}

}  // namespace
}  // namespace deltafin::numerics
