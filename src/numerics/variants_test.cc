// The same bits from every kernel variant, for every operation that is not a product
// (product_test.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "base/philox.h"
#include "numerics/kernels.h"

namespace deltafin::numerics {
namespace {

std::vector<float> random_floats(Random& random, size_t count, float range) {
  std::vector<float> values(count);
  for (float& value : values) value = (2 * random.uniform() - 1) * range;
  return values;
}

// Runs `operation` on every variant and compares its output with the baseline's.
void expect_same(const char* what,
                 const std::function<std::vector<float>(const Kernels&)>& operation) {
  const std::vector<float> expected = operation(kernel_variants()[0]);
  for (const Kernels& kernels : kernel_variants().subspan(1)) {
    const std::vector<float> found = operation(kernels);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
        << what << " on " << kernels.name;
  }
}

TEST(Variants, AreMoreThanOneOnThisMachine) {
  // Comparisons with oneself prove nothing: say so where the processor has no second variant.
  if (kernel_variants().size() < 2) GTEST_SKIP() << "this processor runs only the baseline";
  EXPECT_STREQ(kernel_variants()[0].name, "baseline");
  EXPECT_EQ(find_kernels("avx2")->name, std::string("avx2"));
  EXPECT_EQ(find_kernels("no such"), nullptr);
}

TEST(Variants, AgreeOnElementwiseOperations) {
  Random random(1);
  for (const size_t n : {1u, 7u, 16u, 33u, 100u}) {
    const std::vector<float> a = random_floats(random, n, 20), b = random_floats(random, n, 60);
    const float linear_beta = 25;
    expect_same("add", [&](const Kernels& k) {
      std::vector<float> y(n);
      k.add(a.data(), b.data(), y.data(), n);
      return y;
    });
    expect_same("multiply_add", [&](const Kernels& k) {
      std::vector<float> y = b;
      k.multiply_add(0.3f, a.data(), y.data(), n);
      return y;
    });
    expect_same("swiglu", [&](const Kernels& k) {
      std::vector<float> y(n);
      k.swiglu(a.data(), b.data(), y.data(), n);
      return y;
    });
    expect_same("situ", [&](const Kernels& k) {
      std::vector<float> y(2 * n);
      k.situ_glu(a.data(), b.data(), 4, &linear_beta, y.data(), n);
      k.situ_glu(a.data(), b.data(), 4, nullptr, y.data() + n, n);
      return y;
    });
    expect_same("sigmoid_gate", [&](const Kernels& k) {
      std::vector<float> y(n);
      k.sigmoid_gate(a.data(), b.data(), y.data(), n);
      return y;
    });
    expect_same("decay", [&](const Kernels& k) {
      const float bound = -5;
      std::vector<float> y(2 * n);
      k.kda_decay(a.data(), b.data(), 0.7f, &bound, y.data(), n);
      k.kda_decay(a.data(), b.data(), 0.7f, nullptr, y.data() + n, n);
      return y;
    });
  }
}

TEST(Variants, MultiplyAddRoundsTwice) {
  // 1 + 2^-12 squared needs 24 bits more than f32 has; a fused multiply-add would keep the tail.
  const float a = 1.0f + 0x1p-12f, x = a;
  for (const Kernels& kernels : kernel_variants()) {
    float y = -(1.0f + 0x1p-11f);
    kernels.multiply_add(a, &x, &y, 1);
    EXPECT_EQ(y, 0.0f) << kernels.name;
  }
}

TEST(Variants, AgreeOnNormsAndSoftmax) {
  Random random(2);
  for (const size_t n : {1u, 15u, 64u, 129u, 600u}) {
    const std::vector<float> x = random_floats(random, n, 3), w = random_floats(random, n, 2);
    const std::vector<float> gate = random_floats(random, n, 1), more = random_floats(random, n, 3);
    expect_same("norms", [&](const Kernels& k) {
      std::vector<float> y(4 * n);
      k.rms_norm(x.data(), w.data(), NormWeight::Plain, 1e-5f, y.data(), n);
      k.rms_norm(x.data(), w.data(), NormWeight::ZeroCentred, 1e-6f, y.data() + n, n);
      k.rms_norm_gated(x.data(), w.data(), 1e-5f, gate.data(), y.data() + 2 * n, n);
      k.l2_norm(x.data(), 0.125f, y.data() + 3 * n, n);
      return y;
    });
    expect_same("softmax", [&](const Kernels& k) {
      std::vector<float> y(n);
      k.softmax(x.data(), y.data(), n);
      return y;
    });
    expect_same("attention residual", [&](const Kernels& k) {
      std::vector<float> y(n + 3);
      const float* entries[] = {x.data(), more.data(), gate.data()};
      k.attention_residual(entries, 3, w.data(), 1e-5f, y.data() + n, y.data(), n);
      return y;
    });
  }
}

TEST(Variants, AgreeOnRecurrentLayers) {
  Random random(3);
  for (const size_t channels : {5u, 32u, 70u}) {
    const std::vector<float> rows = random_floats(random, 4 * channels, 2);
    const std::vector<float> taps = random_floats(random, 4 * channels, 1);
    expect_same("convolution", [&](const Kernels& k) {
      const float* pointers[4];
      for (size_t j = 0; j < 4; ++j) pointers[j] = rows.data() + j * channels;
      std::vector<float> y(channels);
      k.short_convolution(pointers, taps.data(), 4, y.data(), channels);
      return y;
    });
  }
  for (const size_t value_count : {1u, 20u, 64u}) {
    const size_t key_dim = 24, tokens = 5;
    const std::vector<float> state = random_floats(random, key_dim * value_count, 1);
    const std::vector<float> q = random_floats(random, tokens * key_dim, 1);
    const std::vector<float> k_rows = random_floats(random, tokens * key_dim, 1);
    const std::vector<float> v = random_floats(random, tokens * value_count, 1);
    std::vector<float> decay = random_floats(random, tokens * key_dim, 0.5f), beta(tokens, 0.4f);
    for (float& value : decay) value += 0.5f;
    const auto run = [&](const Kernels& k, bool with_q) {
      std::vector<float> y(key_dim * value_count + tokens * value_count), scratch(key_dim * 64);
      DeltaRuleBlock block;
      block.state_in = state.data();
      block.state_out = y.data();
      block.state_stride = block.value_count = block.value_stride = block.out_stride = value_count;
      block.key_dim = block.key_stride = block.decay_stride = key_dim;
      block.token_count = tokens;
      block.q = with_q ? q.data() : nullptr;
      block.k = k_rows.data();
      block.decay = decay.data();
      block.v = v.data();
      block.out = y.data() + key_dim * value_count;
      block.beta = beta.data();
      block.beta_stride = 1;
      block.scratch = scratch.data();
      k.delta_rule(block);
      return y;
    };
    expect_same("delta rule", [&](const Kernels& k) { return run(k, true); });
    expect_same("delta rule replay", [&](const Kernels& k) { return run(k, false); });
    // The replay leaves the same state as the step with outputs.
    const std::vector<float> full = run(best_kernels(), true), replay = run(best_kernels(), false);
    EXPECT_EQ(std::memcmp(full.data(), replay.data(), key_dim * value_count * sizeof(float)), 0);
  }
}

// Attention of `count` queries that see `first_seen`, then `step` positions more each, over two
// chunks.
std::vector<float> attend(const Kernels& kernels, std::span<const float> queries, size_t count,
                          std::span<const float> rows, size_t key_dim, size_t value_dim,
                          size_t first_seen, size_t step) {
  std::vector<size_t> seen(count);
  for (size_t q = 0; q < count; ++q) seen[q] = std::min(first_seen + q * step, kAttentionChunk);
  std::vector<float> scores(count * kAttentionChunk), maxima(2 * count), totals(2 * count);
  std::vector<float> sums(2 * count * value_dim), out(count * value_dim);
  const AttentionPartials running{maxima.data(), totals.data(), sums.data(), value_dim};
  const AttentionPartials next = running.from(count);
  AttentionChunk chunk{.queries = queries.data(),
                       .query_stride = key_dim,
                       .query_count = count,
                       .position_counts = seen.data(),
                       .keys = rows.data(),
                       .key_stride = key_dim + 3,
                       .key_dim = key_dim,
                       .values = rows.data() + 1,
                       .value_stride = key_dim + 3,
                       .value_dim = value_dim,
                       .scale = 0.2f};
  kernels.attention_chunk(chunk, scores.data(), running);
  chunk.keys += 7 * (key_dim + 3);
  chunk.values += 7 * (key_dim + 3);
  kernels.attention_chunk(chunk, scores.data(), next);
  kernels.attention_fold(running, next, count, value_dim);
  kernels.attention_finish(running, count, value_dim, out.data(), value_dim);
  return out;
}

TEST(Variants, AgreeOnAttentionOfManyQueriesAndOfEachAlone) {
  Random random(4);
  constexpr size_t kCount = 26, kRows = kAttentionChunk + 7;
  for (const size_t key_dim : {40u, 97u, 192u}) {
    const size_t value_dim = key_dim - 13;
    const std::vector<float> queries = random_floats(random, kCount * key_dim, 1);
    const std::vector<float> rows = random_floats(random, kRows * (key_dim + 3), 1);
    for (const size_t first_seen : {1u, 64u, 500u})
      for (const size_t step : {0u, 1u}) {
        const auto run = [&](const Kernels& k) {
          return attend(k, queries, kCount, rows, key_dim, value_dim, first_seen, step);
        };
        expect_same("attention", run);
        const std::vector<float> together = run(best_kernels());
        for (size_t q = 0; q < kCount; ++q) {
          const std::vector<float> alone =
              attend(best_kernels(), std::span(queries).subspan(q * key_dim, key_dim), 1, rows,
                     key_dim, value_dim, first_seen + q * step, 0);
          EXPECT_EQ(
              std::memcmp(alone.data(), together.data() + q * value_dim, value_dim * sizeof(float)),
              0)
              << "query " << q << " of " << first_seen << " step " << step;
        }
      }
  }
}

}  // namespace
}  // namespace deltafin::numerics
