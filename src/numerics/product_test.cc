#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "numerics/inner_product.h"
#include "numerics/kernels.h"
#include "support/same_bits.h"

namespace deltafin::numerics {
namespace {

using test::expect_same_bits;

// Random floats over many binades, with zeros of both signs and subnormals among them.
float wild_float(Random& random) {
  switch (random.below(16)) {
    case 0:
      return 0.0f;
    case 1:
      return -0.0f;
    case 2:
      return std::bit_cast<float>(uint32_t(random.below(1u << 23)));  // subnormal
    default:
      break;
  }
  const float magnitude = std::ldexp(1.0f + random.uniform(), int(random.below(60)) - 30);
  return random.below(2) == 0 ? magnitude : -magnitude;
}

// A weight matrix of any format at an odd address, with room for its scales.
struct TestMatrix {
  std::vector<std::byte> storage;
  WeightMatrix matrix;
};

TestMatrix random_matrix(Random& random, WeightFormat format, size_t rows, size_t cols) {
  TestMatrix result;
  WeightMatrix& m = result.matrix;
  m.format = format;
  m.rows = rows;
  m.cols = cols;
  const size_t bytes = rows * m.row_bytes(), scale_bytes = rows * cols / 32;
  result.storage.resize(bytes + scale_bytes + 2);
  std::byte* data = result.storage.data() + 1;  // odd: experts lie at any byte of a shard
  m.data = data;
  if (format == WeightFormat::Mxfp4) {
    for (size_t i = 0; i < bytes; ++i) data[i] = std::byte(random.below(256));
    for (size_t i = 0; i < scale_bytes; ++i) {
      const uint64_t kind = random.below(20);
      data[bytes + i] = std::byte(kind == 0 ? random.below(3) : 110 + random.below(30));
    }
    m.scales = data + bytes;
  } else {
    for (size_t i = 0; i < rows * cols; ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(wild_float(random));
      if (format == WeightFormat::F32) {
        std::memcpy(data + 4 * i, &bits, 4);
      } else {
        const uint16_t half = uint16_t(bits >> 16);
        std::memcpy(data + 2 * i, &half, 2);
      }
    }
  }
  return result;
}

std::vector<float> random_columns(Random& random, size_t count, size_t cols) {
  std::vector<float> x(count * cols);
  for (float& value : x) value = wild_float(random);
  return x;
}

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

void compare_with_definition(const Kernels& kernels, WeightFormat format, size_t rows, size_t cols,
                             size_t columns) {
  Random random(rows * 1000003 + cols * 101 + columns);
  const TestMatrix test = random_matrix(random, format, rows, cols);
  const std::vector<float> x = random_columns(random, columns, cols);
  std::vector<float> expected(columns * rows);
  for (size_t c = 0; c < columns; ++c)
    for (size_t r = 0; r < rows; ++r)
      expected[c * rows + r] = inner_product(test.matrix, r, x.data() + c * cols);
  expect_same_bits(run_product(kernels, test.matrix, x, columns), expected,
                   std::string(kernels.name) + " " + std::to_string(rows) + "x" +
                       std::to_string(cols) + " columns " + std::to_string(columns));
}

TEST(Product, EqualsTheDefinitionForEveryVariantAndOddShape) {
  for (const Kernels& kernels : kernel_variants()) {
    for (const WeightFormat format : {WeightFormat::F32, WeightFormat::Bf16}) {
      for (const size_t cols : {1u, 2u, 15u, 16u, 17u, 31u, 32u, 33u, 63u, 95u, 130u})
        for (const size_t columns : {1u, 2u, 3u, 4u, 5u, 9u})
          compare_with_definition(kernels, format, 3, cols, columns);
    }
    for (const size_t cols : {32u, 64u, 96u, 128u, 160u, 288u})
      for (const size_t columns : {1u, 3u, 4u, 7u})
        compare_with_definition(kernels, WeightFormat::Mxfp4, 5, cols, columns);
  }
}

// Shapes at the edges of what the vector code does together: tiles of rows and of columns, blocks
// of 64 rows and 64 columns, stretches of 512 elements.
TEST(Product, EqualsTheDefinitionAtTheEdgesOfTiles) {
  for (const Kernels& kernels : kernel_variants()) {
    for (const WeightFormat format : {WeightFormat::F32, WeightFormat::Bf16, WeightFormat::Mxfp4}) {
      for (const size_t rows : {1u, 2u, 4u, 7u, 8u, 9u, 12u})
        for (const size_t columns : {1u, 2u, 4u, 5u, 6u, 7u, 24u, 25u, 26u, 27u})
          compare_with_definition(kernels, format, rows, 160, columns);
      for (const size_t cols : {480u, 512u, 544u, 1024u, 1056u})
        for (const size_t columns : {1u, 6u, 8u, 31u})
          compare_with_definition(kernels, format, 10, cols, columns);
      for (const size_t rows : {63u, 64u, 65u, 72u, 131u})
        for (const size_t columns : {1u, 3u, 64u, 65u})
          compare_with_definition(kernels, format, rows, 672, columns);
    }
  }
}

TEST(ProductFull, EqualsTheDefinitionUpTo257Columns) {
  for (const Kernels& kernels : kernel_variants())
    for (size_t columns = 1; columns <= 257; ++columns) {
      compare_with_definition(kernels, WeightFormat::F32, 20, 551, columns);
      compare_with_definition(kernels, WeightFormat::Bf16, 21, 1101, columns);
      compare_with_definition(kernels, WeightFormat::Mxfp4, 19, 672, columns);
    }
}

TEST(Product, OfABatchEqualsTheProductOfEachColumnAlone) {
  Random random(7);
  for (const Kernels& kernels : kernel_variants()) {
    for (const WeightFormat format : {WeightFormat::F32, WeightFormat::Bf16, WeightFormat::Mxfp4}) {
      const TestMatrix test = random_matrix(random, format, 9, 224);
      const std::vector<float> x = random_columns(random, 33, 224);
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

TEST(Product, LeavesLanesWithoutElementsAlone) {
  // Every lane in use underflows to -0. A padded fma(0, 0, -0) would turn its lane, and so the
  // result, into +0; with 17 elements the lanes hold one or two elements each.
  for (const Kernels& kernels : kernel_variants()) {
    const std::vector<float> w(16, -1e-30f), x(16, 1e-30f);
    WeightMatrix m{.format = WeightFormat::F32, .rows = 1, .cols = 16};
    m.data = reinterpret_cast<const std::byte*>(w.data());
    EXPECT_EQ(std::bit_cast<uint32_t>(run_product(kernels, m, x, 1)[0]), 0x80000000u)
        << kernels.name;
    EXPECT_EQ(std::bit_cast<uint32_t>(kernels.dot(w.data(), x.data(), 16)), 0x80000000u)
        << kernels.name;
  }
}

TEST(Product, KeepsSubnormalsAndScaleExtremes) {
  // One group of 32 at each extreme: codes all +0.5 (1) against x = 1 give 16 x 2^(s - 127).
  for (const Kernels& kernels : kernel_variants()) {
    for (const unsigned scale : {0u, 1u, 2u, 127u, 250u, 254u}) {
      std::vector<std::byte> storage(16, std::byte{0x11});
      storage.push_back(std::byte(scale));
      WeightMatrix m{.format = WeightFormat::Mxfp4, .rows = 1, .cols = 32};
      m.data = storage.data();
      m.scales = storage.data() + 16;
      const float y = run_product(kernels, m, std::vector<float>(32, 1.0f), 1)[0];
      EXPECT_EQ(y, std::ldexp(16.0f, int(scale) - 127)) << kernels.name << " scale " << scale;
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
        const std::vector<float> coefficients = random_columns(random, count, kRows + 2);
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
      const std::vector<float> a = random_columns(random, 1, n + 1),
                               b = random_columns(random, 1, n + 1);
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
      const std::vector<float> x = random_columns(random, 1, n + 1);
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
