// Every operation against the float64 goldens of tests/golden/golden-ops, on every kernel variant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/philox.h"
#include "numerics/kernels.h"
#include "numerics/router.h"
#include "support/golden.h"

namespace deltafin::numerics {
namespace {

const test::Golden& golden() {
  static const test::Golden data("golden-ops");
  return data;
}

// |found - expected| <= bound * max(|expected|, floor): the bound of tests/golden/README.md is 1e-6
// relative; sums of many terms are held to it relative to the largest element.
void expect_close(std::span<const float> found, std::span<const float> expected, double bound,
                  const char* what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0, worst = 0;
  for (const float value : expected) largest = std::max(largest, std::fabs(double(value)));
  for (size_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::fabs(double(found[i]) - double(expected[i])));
  EXPECT_LE(worst, bound * largest) << what;
}

class Operations : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

std::vector<const Kernels*> all_variants() {
  std::vector<const Kernels*> variants;
  for (const Kernels& kernels : kernel_variants()) variants.push_back(&kernels);
  return variants;
}

INSTANTIATE_TEST_SUITE_P(Variants, Operations, testing::ValuesIn(all_variants()),
                         [](const testing::TestParamInfo<const Kernels*>& variant) {
                           return std::string(variant.param->name);
                         });

TEST_P(Operations, DecodeMxfp4Exactly) {
  const std::vector<uint8_t> packed = golden().u8("mxfp4.packed"),
                             scale = golden().u8("mxfp4.scale");
  const std::vector<float> expected = golden().f32("mxfp4.out");
  const WeightMatrix m{.format = WeightFormat::Mxfp4,
                       .rows = 8,
                       .cols = 128,
                       .data = reinterpret_cast<const std::byte*>(packed.data()),
                       .scales = reinterpret_cast<const std::byte*>(scale.data())};
  std::vector<float> unit(128), y(8);
  for (size_t column = 0; column < 128; ++column) {
    std::ranges::fill(unit, 0.0f);
    unit[column] = 1;
    std::vector<float> packed_unit(packed_size(128));
    kernels().pack_column(m.format, unit.data(), 128, packed_unit.data());
    kernels().product(m, packed_unit.data(), 128, 1, y.data(), 8);
    for (size_t row = 0; row < 8; ++row) ASSERT_EQ(y[row], expected[row * 128 + column]);
  }
}

TEST_P(Operations, MultiplyMxfp4) {
  const std::vector<uint8_t> packed = golden().u8("mxfp4.packed"),
                             scale = golden().u8("mxfp4.scale");
  const std::vector<float> x = golden().f32("mxfp4_matmul.x");
  // The golden product is over the first 64 columns of each row.
  std::vector<uint8_t> narrow, narrow_scale;
  for (size_t row = 0; row < 8; ++row) {
    narrow.insert(narrow.end(), packed.begin() + ptrdiff_t(row * 64),
                  packed.begin() + ptrdiff_t(row * 64 + 32));
    narrow_scale.insert(narrow_scale.end(), scale.begin() + ptrdiff_t(row * 4),
                        scale.begin() + ptrdiff_t(row * 4 + 2));
  }
  const WeightMatrix m{.format = WeightFormat::Mxfp4,
                       .rows = 8,
                       .cols = 64,
                       .data = reinterpret_cast<const std::byte*>(narrow.data()),
                       .scales = reinterpret_cast<const std::byte*>(narrow_scale.data())};
  std::vector<float> packed_x(5 * 128), y(40);
  for (size_t c = 0; c < 5; ++c)
    kernels().pack_column(m.format, x.data() + c * 64, 64, packed_x.data() + c * 128);
  kernels().product(m, packed_x.data(), 128, 5, y.data(), 8);
  expect_close(y, golden().f32("mxfp4_matmul.out"), 1e-6, "mxfp4_matmul");
}

TEST_P(Operations, ActivateWithSituAndSwiglu) {
  const std::vector<float> gate = golden().f32("situ.gate"), up = golden().f32("situ.up");
  std::vector<float> y(gate.size());
  const float linear_beta = 25;
  kernels().situ_glu(gate.data(), up.data(), 4, &linear_beta, y.data(), y.size());
  expect_close(y, golden().f32("situ.out"), 1e-6, "situ");
  kernels().situ_glu(gate.data(), up.data(), 4, nullptr, y.data(), y.size());
  expect_close(y, golden().f32("situ.out_no_linear_beta"), 1e-6, "situ without linear beta");
  kernels().swiglu(gate.data(), up.data(), y.data(), y.size());
  expect_close(y, golden().f32("swiglu.out"), 1e-6, "swiglu");
}

TEST_P(Operations, Normalise) {
  const std::vector<float> x = golden().f32("norm.x"), w = golden().f32("norm.w");
  std::vector<float> rms(x.size()), l2(x.size());
  for (size_t row = 0; row < 4; ++row) {
    kernels().rms_norm(x.data() + row * 64, w.data(), NormWeight::Plain, 1e-5f,
                       rms.data() + row * 64, 64);
    kernels().l2_norm(x.data() + row * 64, 1, l2.data() + row * 64, 64);
  }
  expect_close(rms, golden().f32("norm.rms_1e-5"), 1e-6, "rms");
  expect_close(l2, golden().f32("norm.l2_1e-6"), 1e-6, "l2");
}

// The epsilon is of the size of the sum here. Logits do not tell it from one that bounds the norm,
// or that is added to the mean.
TEST_P(Operations, L2NormAddsItsEpsilonToTheSumOfSquares) {
  Random random(17);
  for (const size_t n : {16u, 32u, 128u, 130u})
    for (const double length : {1e-6, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2}) {
      std::vector<float> x(n), found(n), expected(n);
      for (float& value : x)
        value = float((double(random.uniform()) - 0.5) * length * std::sqrt(12.0 / double(n)));
      double sum = 0;
      for (const float value : x) sum += double(value) * double(value);
      const float scale = 0.25f;
      for (size_t i = 0; i < n; ++i)
        expected[i] = float(double(x[i]) / std::sqrt(sum + 1e-6) * double(scale));
      kernels().l2_norm(x.data(), scale, found.data(), n);
      expect_close(found, expected, 1e-6, "l2");
    }
}

TEST_P(Operations, ZeroCentredNormAddsOneToTheWeight) {
  const std::vector<float> x = golden().f32("norm.x"), w = golden().f32("norm.w");
  std::vector<float> plus_one(w), plain(64), centred(64);
  for (float& value : plus_one) value = 1.0f + value;
  kernels().rms_norm(x.data(), plus_one.data(), NormWeight::Plain, 1e-5f, plain.data(), 64);
  kernels().rms_norm(x.data(), w.data(), NormWeight::ZeroCentred, 1e-5f, centred.data(), 64);
  EXPECT_EQ(plain, centred);
}

TEST_P(Operations, MixAttentionResiduals) {
  const std::vector<float> blocks = golden().f32("attnres.blocks"),
                           prefix = golden().f32("attnres.prefix");
  const float* entries[] = {blocks.data(), blocks.data() + 128, blocks.data() + 256, prefix.data()};
  std::vector<float> probabilities(4), out(128);
  kernels().attention_residual(entries, 4, golden().f32("attnres.score_weight").data(), 1e-5f,
                               probabilities.data(), out.data(), 128);
  expect_close(probabilities, golden().f32("attnres.probs"), 1e-6, "probabilities");
  expect_close(out, golden().f32("attnres.out"), 1e-6, "mix");
}

TEST_P(Operations, Convolve) {
  const std::vector<float> x = golden().f32("conv.x"), window = golden().f32("conv.window");
  const std::vector<float> taps = golden().f32("conv.taps");
  std::vector<float> stream(window), out(x.size());
  stream.insert(stream.end(), x.begin(), x.end());
  for (size_t t = 0; t < 7; ++t) {
    const float* rows[4];
    for (size_t j = 0; j < 4; ++j) rows[j] = stream.data() + (t + j) * 96;
    kernels().short_convolution(rows, taps.data(), 4, out.data() + t * 96, 96);
  }
  expect_close(out, golden().f32("conv.out"), 1e-6, "conv");
}

// Six tokens of KDA from a non-zero state; returns what should match kda.<form>.*.
void check_kda(const Kernels& kernels, const char* form, const float* lower_bound) {
  const test::Golden& g = golden();
  constexpr size_t kTokens = 6, kHeads = 3, kDim = 32, kWidth = kHeads * kDim;
  std::vector<float> q = g.f32("kda.q"), k = g.f32("kda.k"), beta = g.f32("kda.beta_logit");
  const std::vector<float> v = g.f32("kda.v"), bias = g.f32("kda.dt_bias");
  std::vector<float> decay = g.f32("kda.z"), rates(kHeads), out(q.size());
  kernels.elementary(Elementary::Exp, g.f32("kda.A_log").data(), rates.data(), kHeads);
  kernels.elementary(Elementary::Sigmoid, beta.data(), beta.data(), beta.size());
  const float scale = float(1 / std::sqrt(32.0));
  for (size_t at = 0; at < q.size(); at += kDim) {
    const size_t head = at / kDim % kHeads;
    kernels.l2_norm(q.data() + at, scale, q.data() + at, kDim);
    kernels.l2_norm(k.data() + at, 1, k.data() + at, kDim);
    kernels.kda_decay(decay.data() + at, bias.data() + head * kDim, rates[head], lower_bound,
                      decay.data() + at, kDim);
  }
  std::vector<float> expected_decay = g.f32(std::string("kda.") + form + ".log_decay");
  for (float& value : expected_decay) value = float(std::exp(double(value)));
  expect_close(decay, expected_decay, 1e-6, "decay");

  std::vector<float> state = g.f32("kda.S0"), scratch(kDim * kDeltaRuleValueBlock);
  for (size_t head = 0; head < kHeads; ++head) {
    for (const size_t first : {size_t{0}, size_t{20}}) {  // two value blocks of uneven width
      DeltaRuleBlock block;
      block.state_in = block.state_out = state.data() + head * kDim * kDim + first;
      block.state_stride = block.key_dim = kDim;
      block.value_count = first == 0 ? 20 : 12;
      block.token_count = kTokens;
      block.q = q.data() + head * kDim;
      block.k = k.data() + head * kDim;
      block.decay = decay.data() + head * kDim;
      block.key_stride = block.decay_stride = block.value_stride = block.out_stride = kWidth;
      block.v = v.data() + head * kDim + first;
      block.out = out.data() + head * kDim + first;
      block.beta = beta.data() + head;
      block.beta_stride = kHeads;
      block.scratch = scratch.data();
      kernels.delta_rule(block);
    }
  }
  expect_close(out, g.f32(std::string("kda.") + form + ".out"), 2e-6, form);
  expect_close(state, g.f32(std::string("kda.") + form + ".state"), 2e-6, form);

  if (lower_bound != nullptr) return;
  std::vector<float> gate = g.f32("kda.out_gate"), gated(out.size());
  kernels.elementary(Elementary::Sigmoid, gate.data(), gate.data(), gate.size());
  for (size_t at = 0; at < out.size(); at += kDim)
    kernels.rms_norm_gated(out.data() + at, g.f32("kda.o_norm").data(), 1e-5f, gate.data() + at,
                           gated.data() + at, kDim);
  expect_close(gated, g.f32("kda.gated_out"), 4e-6, "gated norm");
}

TEST_P(Operations, RunTheDeltaRuleWithSoftplusDecay) { check_kda(kernels(), "softplus", nullptr); }

TEST_P(Operations, RunTheDeltaRuleWithBoundedDecay) {
  const float bound = -5;
  check_kda(kernels(), "lower_bound", &bound);
}

TEST_P(Operations, AttendInAbsorbedForm) {
  const test::Golden& g = golden();
  constexpr size_t kHeads = 3, kNope = 32, kExtra = 16, kRank = 64, kValue = 32,
                   kWidth = kRank + kExtra;
  const std::vector<float> q = g.f32("mla.q"), cache = g.f32("mla.cache"), kv_b = g.f32("mla.kv_b");
  std::vector<float> out(kHeads * kValue);
  for (size_t head = 0; head < kHeads; ++head) {
    WeightMatrix key{.rows = kNope, .cols = kRank};
    key.data = reinterpret_cast<const std::byte*>(kv_b.data() + head * (kNope + kValue) * kRank);
    WeightMatrix value{.rows = kValue, .cols = kRank};
    value.data = key.data + kNope * kRank * sizeof(float);
    const float* own = q.data() + head * (kNope + kExtra);
    std::vector<float> query(kWidth), scores(kAttentionChunk), sum(kRank),
        packed(packed_size(kRank));
    kernels().product_transposed(key, own, kNope, 1, query.data(), kWidth);
    std::copy(own + kNope, own + kNope + kExtra, query.begin() + kRank);
    const size_t seen = 9;
    AttentionChunk chunk{.queries = query.data(),
                         .query_stride = kWidth,
                         .query_count = 1,
                         .position_counts = &seen,
                         .keys = cache.data(),
                         .key_stride = kWidth,
                         .key_dim = kWidth,
                         .values = cache.data(),
                         .value_stride = kWidth,
                         .value_dim = kRank,
                         .scale = float(1 / std::sqrt(48.0))};
    float maximum = 0, total = 0;
    const AttentionPartials partial{&maximum, &total, sum.data(), kRank};
    kernels().attention_chunk(chunk, scores.data(), partial);
    kernels().attention_finish(partial, 1, kRank, sum.data(), kRank);
    kernels().pack_column(WeightFormat::F32, sum.data(), kRank, packed.data());
    kernels().product(value, packed.data(), packed.size(), 1, out.data() + head * kValue, kValue);
  }
  expect_close(out, g.f32("mla.out"), 2e-6, "mla");
  std::vector<float> gated(out.size());
  kernels().sigmoid_gate(out.data(), g.f32("mla.gate_logit").data(), gated.data(), gated.size());
  expect_close(gated, g.f32("mla.gated_out"), 2e-6, "gate");
}

TEST_P(Operations, FoldOfAttentionChunksIsAttentionOverAll) {
  // Softmax over 3 positions in chunks of 1, 1, 1 against one chunk of 3: equal up to rounding,
  // whether the largest score comes first or last.
  const std::vector<float> falling = {0, 4, 2, -1, 0.5f, 2, 1, 2, 3};
  const std::vector<float> rising = {1, 2, 3, -1, 0.5f, 2, 0, 4, 2};
  const std::vector<float> query = {0.7f, 0.9f, -0.4f};
  for (const std::vector<float>& rows : {falling, rising}) {
    size_t seen = 3;
    AttentionChunk chunk{.queries = query.data(),
                         .query_stride = 3,
                         .query_count = 1,
                         .position_counts = &seen,
                         .keys = rows.data(),
                         .key_stride = 3,
                         .key_dim = 3,
                         .values = rows.data(),
                         .value_stride = 3,
                         .value_dim = 3};
    std::vector<float> scores(kAttentionChunk), whole(3), folded(3), next_sum(3);
    float maxima[3], totals[3];
    const AttentionPartials all{&maxima[0], &totals[0], whole.data(), 3};
    const AttentionPartials running{&maxima[1], &totals[1], folded.data(), 3};
    const AttentionPartials next{&maxima[2], &totals[2], next_sum.data(), 3};
    kernels().attention_chunk(chunk, scores.data(), all);
    seen = 1;
    for (size_t p = 0; p < 3; ++p) {
      chunk.keys = chunk.values = rows.data() + 3 * p;
      kernels().attention_chunk(chunk, scores.data(), p == 0 ? running : next);
      if (p > 0) kernels().attention_fold(running, next, 1, 3);
    }
    kernels().attention_finish(all, 1, 3, whole.data(), 3);
    kernels().attention_finish(running, 1, 3, folded.data(), 3);
    expect_close(folded, whole, 1e-6, "fold");
  }
}

void check_router(const Kernels& kernels, const char* name, RouterRule rule, bool with_bias) {
  const test::Golden& g = golden();
  const std::vector<float> logits = g.f32("router.logits"), bias = g.f32("router.bias");
  const std::vector<float> zero(bias.size(), 0.0f);
  const std::string prefix = std::string("router.") + name;
  const std::vector<int32_t> ids = g.i32(prefix + ".ids");
  const std::vector<float> weights = g.f32(prefix + ".weights");
  rule.top_k = 4;
  std::vector<float> scratch;
  for (size_t row = 0; row < 24; ++row) {
    std::vector<Route> routes(4);
    ASSERT_TRUE(choose_routes(kernels, rule, std::span(logits).subspan(row * 32, 32),
                              with_bias ? bias : zero, scratch, routes));
    for (size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(int32_t(routes[i].expert), ids[row * 4 + i]) << name << " row " << row;
      ASSERT_NEAR(routes[i].weight, weights[row * 4 + i], 1e-6) << name << " row " << row;
    }
  }
}

TEST_P(Operations, RouteAsTheReferenceDoes) {
  check_router(kernels(), "plain", {}, true);
  check_router(kernels(), "scaled", {.scale = 2.446f}, true);
  check_router(kernels(), "no_renorm", {.renormalize = false}, true);
  check_router(kernels(), "groups4of2", {.group_count = 4, .groups_kept = 2}, true);
  check_router(kernels(), "zero_bias", {}, false);
}

}  // namespace
}  // namespace deltafin::numerics
