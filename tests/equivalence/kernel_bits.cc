// A hash of the bits that every operation of every kernel variant returns, so that variants of
// different processors can be compared without a machine that runs both. Needs nothing but the
// rooms base and numerics: it is also built for processors that the tests are not built for.
//
//   kernel_bits
//       "variant operation hash" lines of all variants; exits 1 if two differ
//   kernel_bits --variant NAME
//       "operation hash" lines of one, for cmp. NAME may be "best".
//
// Inputs come from Philox and simple exact arithmetic: the same on every machine.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/float_control.h"
#include "base/philox.h"
#include "numerics/kernels.h"
#include "numerics/rope.h"
#include "numerics/router.h"

namespace deltafin::numerics {
namespace {

// FNV-1a over the bits. A NaN's payload is unspecified, so every NaN counts as the same one.
class Hash {
 public:
  void add(uint32_t bits) {
    for (int i = 0; i < 4; ++i, bits >>= 8) value_ = (value_ ^ (bits & 0xff)) * 0x100000001b3;
  }
  void add(std::span<const float> values) {
    for (const float x : values) add(std::isnan(x) ? 0x7fc00000u : std::bit_cast<uint32_t>(x));
  }
  // Where a NaN or an infinity would hide what went into it.
  void add_finite(std::span<const float> values) {
    CHECK(std::ranges::all_of(values, [](float x) { return std::isfinite(x); }));
    add(values);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

// --- inputs -------------------------------------------------------------------------------------

// Floats of magnitude 2^lowest up to 2^(lowest + binades); one in eight is a zero of either sign or
// a subnormal.
struct Floats {
  int lowest = -30;
  unsigned binades = 60;
};
constexpr Floats kWild{}, kMild{-6, 8}, kTiny{-60, 20};

float next_float(Random& random, Floats kind) {
  const uint32_t choice = random.next_u32(), bits = random.next_u32();
  const uint32_t sign = choice & 0x80000000u, fraction = bits & 0x007fffffu;
  if (choice % 16 == 0) return std::bit_cast<float>(sign);
  if (choice % 16 == 1) return std::bit_cast<float>(sign | fraction);
  const uint32_t exponent = uint32_t(127 + kind.lowest) + (choice >> 8 & 0xffff) % kind.binades;
  return std::bit_cast<float>(sign | exponent << 23 | fraction);
}

std::vector<float> floats(Random& random, size_t count, Floats kind) {
  std::vector<float> values(count);
  for (float& value : values) value = next_float(random, kind);
  return values;
}

// Uniform in [0, 1).
std::vector<float> fractions(Random& random, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform();
  return values;
}

// E8M0 scales from `lowest` on. Extremes of both ends never meet: beside 2^127 nothing would be
// left of 2^-127.
struct Scales {
  unsigned lowest, count;
};
constexpr Scales kUsualScales{110, 30}, kLowestScales{0, 3}, kHighestScales{250, 5};

// Weights at an address that is no multiple of 4: experts lie at any byte of a shard.
struct Matrix {
  Matrix(Random& random, WeightFormat format, size_t rows, size_t cols, Scales scales) {
    weights = {.format = format, .rows = rows, .cols = cols};
    const size_t bytes = rows * weights.row_bytes();
    const size_t scale_bytes = rows * cols / WeightMatrix::kMxfp4Group;
    const size_t skipped = 1 + 2 * random.below(2);
    storage.resize(skipped + bytes + scale_bytes);
    std::byte* data = storage.data() + skipped;
    weights.data = data;
    if (format == WeightFormat::Mxfp4) {
      weights.scales = data + bytes;
      for (size_t i = 0; i < bytes; ++i) data[i] = std::byte(random.next_u32() & 0xff);
      for (size_t i = 0; i < scale_bytes; ++i)
        data[bytes + i] = std::byte(scales.lowest + random.next_u32() % scales.count);
      return;
    }
    const size_t size = weights.row_bytes() / cols;
    for (size_t i = 0; i < rows * cols; ++i) {
      // The upper bytes, so that a BF16 value is the start of a float.
      const float value = next_float(random, kWild);
      std::memcpy(data + i * size, reinterpret_cast<const char*>(&value) + 4 - size, size);
    }
  }

  WeightMatrix weights;
  std::vector<std::byte> storage;
};

// --- products -----------------------------------------------------------------------------------

struct Shape {
  size_t rows, cols, columns;
};

void product_of(const Kernels& kernels, WeightFormat format, Shape shape, Floats x_kind,
                Scales scales, Hash& hash) {
  const auto [rows, cols, columns] = shape;
  Random random(rows * 1000003 + cols * 1009 + columns * 7 + size_t(format));
  const Matrix matrix(random, format, rows, cols, scales);
  const std::vector<float> x = floats(random, columns * cols, x_kind);
  const size_t stride = packed_size(cols), y_stride = rows + 3;
  // What no column fills must not count.
  std::vector<float> packed(columns * stride, std::numeric_limits<float>::quiet_NaN());
  for (size_t c = 0; c < columns; ++c)
    kernels.pack_column(format, x.data() + c * cols, cols, packed.data() + c * stride);
  std::vector<float> y(columns * y_stride, -1.0f);
  kernels.product(matrix.weights, packed.data(), stride, columns, y.data(), y_stride);
  hash.add_finite(y);
}

// The groups of MXFP4 are always whole.
size_t whole_groups(WeightFormat format, size_t cols) {
  constexpr size_t kGroup = WeightMatrix::kMxfp4Group;
  return format == WeightFormat::Mxfp4 ? (cols + kGroup - 1) / kGroup * kGroup : cols;
}

// Direct and panel tiles of every width, beside whole and single rows.
template <WeightFormat format>
void product_columns(const Kernels& kernels, Hash& hash) {
  for (const size_t columns : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 24u, 25u, 26u, 27u})
    product_of(kernels, format, {9, whole_groups(format, 165), columns}, kWild, kUsualScales, hash);
}

// Every remainder of rows; 64 rows are one block.
template <WeightFormat format>
void product_rows(const Kernels& kernels, Hash& hash) {
  for (const size_t rows : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 10u, 11u, 12u, 64u, 65u})
    for (const size_t columns : {1u, 3u, 6u})
      product_of(kernels, format, {rows, whole_groups(format, 150), columns}, kWild, kUsualScales,
                 hash);
}

// Tails behind no, one and several blocks, and behind stretches of 512.
template <WeightFormat format>
void product_tails(const Kernels& kernels, Hash& hash) {
  for (const size_t cols : {1u, 2u, 15u, 16u, 17u, 31u, 32u, 33u, 63u, 95u, 130u, 288u, 480u, 511u,
                            512u, 513u, 544u, 1024u, 1101u})
    for (const size_t columns : {1u, 2u, 5u, 25u})
      product_of(kernels, format, {10, whole_groups(format, cols), columns}, kWild, kUsualScales,
                 hash);
}

// One, two and three blocks of 64 columns; then two blocks of 64 rows.
template <WeightFormat format>
void product_batches(const Kernels& kernels, Hash& hash) {
  for (const size_t columns : {64u, 65u, 130u})
    product_of(kernels, format, {9, whole_groups(format, 530), columns}, kWild, kUsualScales, hash);
  product_of(kernels, format, {73, whole_groups(format, 530), 25}, kWild, kUsualScales, hash);
}

// Scales of 2^-127, a subnormal, and up to 2^127 with x so small that no sum overflows.
void product_scales(const Kernels& kernels, Hash& hash) {
  for (const size_t cols : {32u, 96u, 128u, 288u, 640u})
    for (const size_t columns : {1u, 2u, 4u, 5u, 7u, 25u}) {
      const Shape shape{11, cols, columns};
      product_of(kernels, WeightFormat::Mxfp4, shape, kWild, kLowestScales, hash);
      product_of(kernels, WeightFormat::Mxfp4, shape, kTiny, kHighestScales, hash);
    }
}

// A sum in which every lane underflows to -0: a padded fma(0, 0, -0) would make it +0.
void product_negative_zeros(const Kernels& kernels, Hash& hash) {
  for (const size_t cols : {16u, 17u, 33u}) {
    const std::vector<float> w(9 * cols, -1e-30f), x(6 * cols, 1e-30f);
    const WeightMatrix matrix{.format = WeightFormat::F32,
                              .rows = 9,
                              .cols = cols,
                              .data = reinterpret_cast<const std::byte*>(w.data())};
    std::vector<float> y(54);
    for (const size_t columns : {1u, 6u}) {
      kernels.product(matrix, x.data(), cols, columns, y.data(), 9);
      hash.add_finite(y);
    }
  }
}

// Tiles of every number of sets and vectors, and columns beside them; rows with a gap.
template <WeightFormat format>
void product_transposed(const Kernels& kernels, Hash& hash) {
  Random random(2);
  constexpr size_t kRows = 13, kStride = kRows + 2;
  for (const size_t cols : {1u, 7u, 16u, 37u, 64u, 96u, 131u})
    for (const size_t count : {1u, 2u, 3u, 4u, 5u, 7u})
      for (const bool gap : {false, true}) {
        Matrix matrix(random, format, kRows, cols + gap, kUsualScales);
        matrix.weights.stride = matrix.weights.row_bytes();
        matrix.weights.cols = cols;
        const std::vector<float> coefficients = floats(random, count * kStride, kWild);
        std::vector<float> out(count * (cols + 1));
        kernels.product_transposed(matrix.weights, coefficients.data(), kStride, count, out.data(),
                                   cols + 1);
        hash.add_finite(out);
      }
}

void dot_and_sum(const Kernels& kernels, Hash& hash) {
  Random random(3);
  for (size_t n = 0; n <= 100; ++n) {
    const std::vector<float> a = floats(random, n, kWild), b = floats(random, n, kWild);
    hash.add_finite({{kernels.dot(a.data(), b.data(), n), kernels.sum(a.data(), n)}});
  }
}

// --- elementwise --------------------------------------------------------------------------------

// Where the functions change their formula, saturate, overflow or turn subnormal; then floats of
// every exponent from 2^-40 to 2^10 and of both signs.
std::vector<float> arguments() {
  Random random(4);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {kInfinity,
                          -kInfinity,
                          std::numeric_limits<float>::quiet_NaN(),
                          0,
                          -0.0f,
                          1,
                          -1,
                          0.625f,
                          -0.625f,
                          0x1.6a09e6p-1f,
                          0x1.6a09e8p-1f,
                          89,
                          -104,
                          0x1p-126f,
                          0x1p-149f,
                          0x1.fffffep127f,
                          -0x1.fffffep127f};
  for (const float edge : {88.7f, -87.3f, -103.9f})
    for (int i = 0; i < 40; ++i) x.push_back(edge + float(i) * 0.01f);
  for (int i = 0; i < 1500; ++i) x.push_back(next_float(random, {-40, 50}));
  return x;
}

template <Elementary function>
void elementary(const Kernels& kernels, Hash& hash) {
  const std::vector<float> x = arguments();
  std::vector<float> y(x.size());
  kernels.elementary(function, x.data(), y.data(), x.size());
  hash.add(y);
  // Short ones: the vector loop of a compiler and its tail.
  for (size_t n = 1; n <= 40; ++n) {
    kernels.elementary(function, x.data() + 17 + n, y.data(), n);
    hash.add(std::span(y).first(n));
  }
}

// Lengths around those of vectors, and one of some blocks.
constexpr size_t kLengths[] = {1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 100, 129, 600};

void elementwise(const Kernels& kernels, Hash& hash) {
  Random random(5);
  for (const size_t n : kLengths) {
    const std::vector<float> a = floats(random, n, kMild), b = floats(random, n, {-8, 14});
    const float linear_beta = 25;
    std::vector<float> y = b;
    kernels.add(a.data(), b.data(), y.data(), n);
    hash.add_finite(y);
    kernels.multiply_add(0.3f, a.data(), y.data(), n);
    hash.add_finite(y);
    kernels.swiglu(a.data(), b.data(), y.data(), n);
    hash.add_finite(y);
    kernels.situ_glu(a.data(), b.data(), 4, &linear_beta, y.data(), n);
    hash.add_finite(y);
    kernels.situ_glu(a.data(), b.data(), 4, nullptr, y.data(), n);
    hash.add_finite(y);
    kernels.sigmoid_gate(a.data(), b.data(), y.data(), n);
    hash.add_finite(y);
  }
}

// --- norms --------------------------------------------------------------------------------------

void norms(const Kernels& kernels, Hash& hash) {
  Random random(6);
  for (const size_t n : kLengths)
    for (const Floats kind : {kMild, kWild}) {
      const std::vector<float> x = floats(random, n, kind), weight = floats(random, n, kMild);
      const std::vector<float> gate = floats(random, n, kMild);
      std::vector<float> y(n);
      kernels.rms_norm(x.data(), weight.data(), NormWeight::Plain, 1e-5f, y.data(), n);
      hash.add_finite(y);
      kernels.rms_norm(x.data(), weight.data(), NormWeight::ZeroCentred, 1e-6f, y.data(), n);
      hash.add_finite(y);
      kernels.rms_norm_gated(x.data(), weight.data(), 1e-5f, gate.data(), y.data(), n);
      hash.add_finite(y);
      kernels.l2_norm(x.data(), 0.125f, y.data(), n);
      hash.add_finite(y);
    }
}

void softmax(const Kernels& kernels, Hash& hash) {
  Random random(7);
  for (const size_t n : kLengths)
    for (const Floats kind : {kMild, kWild}) {
      const std::vector<float> x = floats(random, n, kind);
      std::vector<float> y(n);
      kernels.softmax(x.data(), y.data(), n);
      hash.add_finite(y);
    }
}

void attention_residual(const Kernels& kernels, Hash& hash) {
  Random random(8);
  for (const size_t n : kLengths)
    for (const size_t count : {1u, 2u, 9u}) {
      const std::vector<float> rows = floats(random, count * n, kMild);
      const std::vector<float> score_weight = floats(random, n, kMild);
      std::vector<const float*> entries(count);
      for (size_t j = 0; j < count; ++j) entries[j] = rows.data() + j * n;
      std::vector<float> probabilities(count), out(n);
      kernels.attention_residual(entries.data(), count, score_weight.data(), 1e-5f,
                                 probabilities.data(), out.data(), n);
      hash.add_finite(probabilities);
      hash.add_finite(out);
    }
}

// --- recurrent layers ---------------------------------------------------------------------------

void short_convolution(const Kernels& kernels, Hash& hash) {
  Random random(9);
  for (const size_t channels : kLengths)
    for (const size_t tap_count : {2u, 4u}) {
      const std::vector<float> inputs = floats(random, tap_count * channels, kMild);
      const std::vector<float> taps = floats(random, tap_count * channels, kMild);
      std::vector<const float*> rows(tap_count);
      for (size_t j = 0; j < tap_count; ++j) rows[j] = inputs.data() + j * channels;
      std::vector<float> out(channels);
      kernels.short_convolution(rows.data(), taps.data(), tap_count, out.data(), channels);
      hash.add_finite(out);
    }
}

void kda_decay(const Kernels& kernels, Hash& hash) {
  Random random(10);
  for (const size_t n : kLengths) {
    const std::vector<float> z = floats(random, n, {-6, 10}), bias = floats(random, n, kMild);
    const float bound = -5;
    std::vector<float> decay(n);
    kernels.kda_decay(z.data(), bias.data(), 0.7f, &bound, decay.data(), n);
    hash.add_finite(decay);
    kernels.kda_decay(z.data(), bias.data(), 0.7f, nullptr, decay.data(), n);
    hash.add_finite(decay);
  }
}

void delta_rule(const Kernels& kernels, Hash& hash) {
  Random random(11);
  // One token alone goes another way than several.
  constexpr size_t kKeyDim = 24, kTokens = 5;
  for (const size_t value_count : {1u, 4u, 20u, 63u, 64u, 65u, 127u, 128u})
    for (const auto& [tokens, with_outputs] :
         {std::pair{kTokens, true}, {kTokens, false}, {size_t{1}, true}, {size_t{1}, false}}) {
      // Every stride is longer than what it steps over.
      const size_t state_stride = value_count + 5, value_stride = value_count + 2;
      const size_t key_stride = kKeyDim + 3, decay_stride = kKeyDim + 1, beta_stride = 2;
      std::vector<float> state = floats(random, kKeyDim * state_stride, kMild);
      const std::vector<float> q = floats(random, kTokens * key_stride, kMild);
      const std::vector<float> k = floats(random, kTokens * key_stride, kMild);
      const std::vector<float> v = floats(random, kTokens * value_stride, kMild);
      const std::vector<float> decay = fractions(random, kTokens * decay_stride);
      const std::vector<float> beta = fractions(random, kTokens * beta_stride);
      std::vector<float> out(kTokens * value_stride), scratch(kKeyDim * value_count);
      kernels.delta_rule({.state_in = state.data(),
                          .state_out = state.data(),
                          .state_stride = state_stride,
                          .key_dim = kKeyDim,
                          .value_count = value_count,
                          .token_count = tokens,
                          .q = with_outputs ? q.data() : nullptr,
                          .k = k.data(),
                          .key_stride = key_stride,
                          .decay = decay.data(),
                          .decay_stride = decay_stride,
                          .v = v.data(),
                          .value_stride = value_stride,
                          .out = out.data(),
                          .out_stride = value_stride,
                          .beta = beta.data(),
                          .beta_stride = beta_stride,
                          .scratch = scratch.data()});
      hash.add_finite(state);
      hash.add_finite(out);
    }
}

// --- attention ----------------------------------------------------------------------------------

struct Heads {
  size_t queries, first_seen, step, key_dim, value_dim;
};

// Attention of queries that see `first_seen`, then `step` positions more each, over two chunks.
void attend(const Kernels& kernels, const Heads& heads, Hash& hash) {
  const auto [count, first_seen, step, key_dim, value_dim] = heads;
  Random random(count * 31 + key_dim);
  const size_t query_stride = key_dim + 1, row_stride = key_dim + value_dim + 2;
  const size_t sum_stride = value_dim + 3;
  std::vector<size_t> seen(count);
  for (size_t q = 0; q < count; ++q) seen[q] = std::min(first_seen + q * step, kAttentionChunk);
  const std::vector<float> queries = floats(random, count * query_stride, kMild);
  const std::vector<float> rows = floats(random, 2 * seen.back() * row_stride, kMild);
  std::vector<float> scores(count * kAttentionChunk), maxima(2 * count), totals(2 * count);
  std::vector<float> sums(2 * count * sum_stride), out(count * value_dim);
  const AttentionPartials running{maxima.data(), totals.data(), sums.data(), sum_stride};
  const AttentionPartials next = running.from(count);
  const auto add_partials = [&] {
    hash.add_finite(maxima);
    hash.add_finite(totals);
    hash.add_finite(sums);
  };
  AttentionChunk chunk{.queries = queries.data(),
                       .query_stride = query_stride,
                       .query_count = count,
                       .position_counts = seen.data(),
                       .keys = rows.data(),
                       .key_stride = row_stride,
                       .key_dim = key_dim,
                       .values = rows.data() + key_dim,
                       .value_stride = row_stride,
                       .value_dim = value_dim,
                       .scale = 0.2f};
  kernels.attention_chunk(chunk, scores.data(), running);
  chunk.keys += seen.back() * row_stride;
  chunk.values += seen.back() * row_stride;
  kernels.attention_chunk(chunk, scores.data(), next);
  add_partials();
  // Each into the other: both the higher and the lower maximum are the running one.
  kernels.attention_fold(running, next, count, value_dim);
  kernels.attention_fold(next, running, count, value_dim);
  add_partials();
  kernels.attention_finish(next, count, value_dim, out.data(), value_dim);
  hash.add_finite(out);
}

void attention(const Kernels& kernels, Hash& hash) {
  for (const Heads& heads : {Heads{1, 1, 0, 40, 27}, Heads{1, 2, 0, 5, 3}, Heads{1, 512, 0, 64, 64},
                             Heads{2, 17, 0, 64, 96}, Heads{3, 17, 1, 72, 33},
                             Heads{7, 130, 1, 97, 131}, Heads{26, 500, 1, 40, 16}})
    attend(kernels, heads, hash);
}

void rotate(const Kernels& kernels, Hash& hash) {
  Random random(13);
  for (const size_t n : {2u, 8u, 10u, 32u, 64u, 126u}) {
    std::vector<float> inverse_frequency(n / 2), sines(n / 2), cosines(n / 2), y(n);
    rope_inverse_frequencies(50000, inverse_frequency);
    const std::vector<float> x = floats(random, n, kMild);
    for (const uint64_t position : {0u, 1u, 511u, 1000003u}) {
      rope_angles(position, inverse_frequency, sines, cosines);
      hash.add_finite(sines);
      hash.add_finite(cosines);
      kernels.rotate(x.data(), sines.data(), cosines.data(), y.data(), n);
      hash.add_finite(y);
    }
  }
}

void router(const Kernels& kernels, Hash& hash) {
  Random random(14);
  for (const RouterScore score : {RouterScore::Sigmoid, RouterScore::Softmax})
    for (const uint32_t groups_kept : {8u, 3u}) {
      const RouterRule rule{
          .top_k = 6, .score = score, .scale = 2.5f, .group_count = 8, .groups_kept = groups_kept};
      const std::vector<float> logits = floats(random, 64, kMild), bias = floats(random, 64, kMild);
      std::vector<float> scratch;
      std::vector<Route> routes(rule.top_k);
      CHECK(choose_routes(kernels, rule, logits, bias, scratch, routes));
      for (const Route& route : routes) {
        hash.add(route.expert);
        hash.add_finite({{route.weight}});
      }
    }
}

// --- the list -----------------------------------------------------------------------------------

struct Case {
  const char* name;
  void (*run)(const Kernels& kernels, Hash& hash);
};

constexpr Case kCases[] = {
    {"product/f32/columns", product_columns<WeightFormat::F32>},
    {"product/f32/rows", product_rows<WeightFormat::F32>},
    {"product/f32/tails", product_tails<WeightFormat::F32>},
    {"product/f32/batches", product_batches<WeightFormat::F32>},
    {"product/f32/negative_zeros", product_negative_zeros},
    {"product/bf16/columns", product_columns<WeightFormat::Bf16>},
    {"product/bf16/rows", product_rows<WeightFormat::Bf16>},
    {"product/bf16/tails", product_tails<WeightFormat::Bf16>},
    {"product/bf16/batches", product_batches<WeightFormat::Bf16>},
    {"product/mxfp4/columns", product_columns<WeightFormat::Mxfp4>},
    {"product/mxfp4/rows", product_rows<WeightFormat::Mxfp4>},
    {"product/mxfp4/tails", product_tails<WeightFormat::Mxfp4>},
    {"product/mxfp4/batches", product_batches<WeightFormat::Mxfp4>},
    {"product/mxfp4/scales", product_scales},
    {"product_transposed/f32", product_transposed<WeightFormat::F32>},
    {"product_transposed/bf16", product_transposed<WeightFormat::Bf16>},
    {"dot_and_sum", dot_and_sum},
    {"elementary/exp", elementary<Elementary::Exp>},
    {"elementary/log", elementary<Elementary::Log>},
    {"elementary/log1p", elementary<Elementary::Log1p>},
    {"elementary/sigmoid", elementary<Elementary::Sigmoid>},
    {"elementary/silu", elementary<Elementary::Silu>},
    {"elementary/softplus", elementary<Elementary::Softplus>},
    {"elementary/tanh", elementary<Elementary::Tanh>},
    {"elementwise", elementwise},
    {"norms", norms},
    {"softmax", softmax},
    {"attention_residual", attention_residual},
    {"short_convolution", short_convolution},
    {"kda_decay", kda_decay},
    {"delta_rule", delta_rule},
    {"attention", attention},
    {"rotate", rotate},
    {"router", router},
};

uint64_t hash_of(const Case& one, const Kernels& kernels) {
  Hash hash;
  one.run(kernels, hash);
  return hash.value();
}

// uint64_t has another type on every platform, %llx one.
unsigned long long as_printed(uint64_t hash) { return hash; }

int print_one(const Kernels& kernels) {
  for (const Case& one : kCases)
    std::printf("%-28s %016llx\n", one.name, as_printed(hash_of(one, kernels)));
  return 0;
}

int print_all() {
  int differences = 0;
  for (const Case& one : kCases) {
    const uint64_t expected = hash_of(one, kernel_variants()[0]);
    for (const Kernels& kernels : kernel_variants()) {
      const uint64_t found = hash_of(one, kernels);
      differences += found != expected;
      std::printf("%-8s %-28s %016llx%s\n", kernels.name, one.name, as_printed(found),
                  found == expected ? "" : " differs");
    }
  }
  if (differences > 0) std::fprintf(stderr, "kernel_bits: %d differences\n", differences);
  return differences > 0 ? 1 : 0;
}

int run(std::span<char*> arguments) {
  set_canonical_float_control();
  if (arguments.size() == 1) return print_all();
  if (arguments.size() != 3 || std::string_view(arguments[1]) != "--variant") {
    std::fprintf(stderr, "usage: kernel_bits [--variant NAME]\n");
    return 2;
  }
  const std::string_view name = arguments[2];
  const Kernels* kernels = name == "best" ? &best_kernels() : find_kernels(name);
  if (kernels != nullptr) return print_one(*kernels);
  std::fprintf(stderr, "kernel_bits: this processor has no variant %s\n", arguments[2]);
  return 2;
}

}  // namespace
}  // namespace deltafin::numerics

int main(int argument_count, char** arguments) {
  return deltafin::numerics::run({arguments, size_t(argument_count)});
}
