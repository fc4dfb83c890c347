#include "memory/expert_compute.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/philox.h"
#include "numerics/inner_product.h"
#include "support/same_bits.h"
#include "support/wild_values.h"

namespace deltafin::memory {
namespace {

using checkpoint::Activation;
using numerics::kernel_variants;
using numerics::Kernels;
using numerics::WeightFormat;
using numerics::WeightMatrix;
using test::expect_same_bits;
using test::TestMatrix;

// Small values: the products of three matrices stay finite, and no large term hides the others.
std::vector<float> tame_floats(Random& random, size_t count) {
  std::vector<float> x(count);
  for (float& value : x) value = random.uniform() * 2 - 1;
  return x;
}

TestMatrix tame_matrix(Random& random, WeightFormat format, size_t rows, size_t cols) {
  TestMatrix result = test::random_matrix(random, format, rows, cols);
  if (format == WeightFormat::Mxfp4)
    for (std::byte& scale : result.scales()) scale = std::byte(120 + random.below(4));
  else
    for (size_t i = 0; i < rows * cols; ++i) result.set(i, random.uniform() / 4 - 0.125f);
  return result;
}

struct Formats {
  WeightFormat gate, up, down;
};
constexpr Formats kMxfp4 = {WeightFormat::Mxfp4, WeightFormat::Mxfp4, WeightFormat::Mxfp4};
constexpr Formats kMixed = {WeightFormat::Bf16, WeightFormat::F32, WeightFormat::Bf16};

struct TestExpert {
  TestExpert(Random& random, const Formats& formats, size_t input, size_t inner)
      : gate(tame_matrix(random, formats.gate, inner, input)),
        up(tame_matrix(random, formats.up, inner, input)),
        down(tame_matrix(random, formats.down, input, inner)) {}
  ExpertWeights weights() const { return {gate.matrix, up.matrix, down.matrix}; }

  TestMatrix gate, up, down;
};

// One expert for every number of edges; `rows` rows of input. Every second job of the batch takes
// its rows from the last to the first.
struct TestBatch {
  TestBatch(const Formats& formats, size_t input, size_t inner, size_t row_count,
            std::span<const size_t> edge_counts) {
    Random random(41);
    rows = tame_floats(random, row_count * input);
    // Edges of different experts alternate, so that no job's edges are neighbours.
    std::vector<std::vector<uint32_t>> of_expert(edge_counts.size());
    for (uint32_t i = 0; i < row_count; ++i) {
      for (uint32_t expert = 0; expert < edge_counts.size(); ++expert) {
        if (i >= edge_counts[expert]) continue;
        const uint32_t row = expert % 2 == 0 ? i : uint32_t(row_count - 1 - i);
        of_expert[expert].push_back(uint32_t(edges.size()));
        edges.push_back({.row = row, .expert = expert});
      }
    }
    edge_lists = std::move(of_expert);
    for (size_t expert = 0; expert < edge_counts.size(); ++expert)
      experts.emplace_back(random, formats, input, inner);
    batch = {.layer = 0, .edges = edges, .rows = rows.data(), .row_count = row_count};
  }

  std::vector<ExpertJob> jobs() const {
    std::vector<ExpertJob> result;
    for (size_t expert = 0; expert < experts.size(); ++expert)
      result.push_back({experts[expert].weights(), edge_lists[expert]});
    return result;
  }

  std::vector<float> rows;
  std::vector<ExpertEdge> edges;
  std::vector<std::vector<uint32_t>> edge_lists;
  std::vector<TestExpert> experts;
  ExpertBatch batch;
};

std::vector<float> multiply(const WeightMatrix& weights, const float* x) {
  std::vector<float> y(weights.rows);
  for (size_t r = 0; r < weights.rows; ++r) y[r] = numerics::inner_product(weights, r, x);
  return y;
}

// Each edge alone, by the definition.
std::vector<float> expected_outputs(const TestBatch& test, const ExpertFunction& function) {
  const Kernels& kernels = kernel_variants()[0];
  std::vector<float> outputs;
  for (const ExpertEdge& edge : test.edges) {
    const ExpertWeights weights = test.experts[edge.expert].weights();
    const float* row = test.rows.data() + edge.row * weights.gate.cols;
    std::vector<float> gate = multiply(weights.gate, row);
    const std::vector<float> up = multiply(weights.up, row);
    if (function.activation == Activation::SwiGlu)
      kernels.swiglu(gate.data(), up.data(), gate.data(), gate.size());
    else
      kernels.situ_glu(gate.data(), up.data(), function.situ_beta, &*function.situ_linear_beta,
                       gate.data(), gate.size());
    const std::vector<float> down = multiply(weights.down, gate.data());
    outputs.insert(outputs.end(), down.begin(), down.end());
  }
  return outputs;
}

void expect_each_edge_alone(const TestBatch& test, const ExpertFunction& function) {
  const std::vector<float> expected = expected_outputs(test, function);
  const CancelToken never;
  for (const size_t threads : {1u, 2u, 3u, 8u}) {
    ThreadTeam team(threads);
    for (const Kernels& kernels : kernel_variants()) {
      ExpertCompute compute(team, kernels, function);
      const std::string what = std::string(kernels.name) + ", threads " + std::to_string(threads);
      // Twice with one object: the second run meets the scratch memory of the first.
      for (int run = 0; run < 2; ++run) {
        std::vector<float> found(expected.size(), std::numeric_limits<float>::quiet_NaN());
        ASSERT_TRUE(compute.run(test.jobs(), test.batch, found.data(), never)) << what;
        expect_same_bits(found, expected, what);
      }
      std::vector<float> found(expected.size(), std::numeric_limits<float>::quiet_NaN());
      for (const ExpertJob& job : test.jobs())
        ASSERT_TRUE(compute.run(std::span(&job, 1), test.batch, found.data(), never)) << what;
      expect_same_bits(found, expected, what + ", job by job");
    }
  }
}

const ExpertFunction kSitu = {
    .activation = Activation::SituGlu, .situ_beta = 4, .situ_linear_beta = 25};

// A task takes 128 inner or output rows and 64 edges: none of these is a multiple.
TEST(ExpertComputeTeam, OfSeveralJobsEqualsEachEdgeAlone) {
  constexpr size_t kEdges[] = {3, 0, 1, 7, 1, 30};
  expect_each_edge_alone(TestBatch(kMxfp4, 160, 288, 30, kEdges), kSitu);
  expect_each_edge_alone(TestBatch(kMixed, 101, 137, 30, kEdges), {});
}

TEST(ExpertComputeTeam, TakesEachExpertInFormatsOfItsOwn) {
  constexpr WeightFormat kF32 = WeightFormat::F32, kBf16 = WeightFormat::Bf16;
  constexpr Formats kFormats[] = {
      {kBf16, kBf16, kBf16}, {kF32, kF32, kF32}, {kF32, kBf16, kF32}, kMixed};
  constexpr size_t kEdges[] = {3, 2, 1, 7, 1, 30};
  TestBatch test(kFormats[0], 101, 137, 30, kEdges);
  Random random(43);
  for (size_t expert = 0; expert < test.experts.size(); ++expert)
    test.experts[expert] = TestExpert(random, kFormats[expert % std::size(kFormats)], 101, 137);
  expect_each_edge_alone(test, {});
}

TEST(ExpertComputeTeam, CutsJobsWhereItsColumnsEnd) {
  constexpr size_t kEdges[] = {1, 64, 0, 65, 3, 130};
  expect_each_edge_alone(TestBatch(kMxfp4, 96, 160, 130, kEdges), {});
  expect_each_edge_alone(TestBatch(kMixed, 33, 131, 130, kEdges), kSitu);
}

TEST(ExpertComputeTeamFull, OfSeveralJobsEqualsEachEdgeAloneAtLargerSizes) {
  constexpr size_t kEdges[] = {0, 1, 3, 64, 65, 130, 5, 1, 0, 24, 25};
  expect_each_edge_alone(TestBatch(kMxfp4, 672, 288, 130, kEdges), kSitu);
  expect_each_edge_alone(TestBatch(kMixed, 275, 551, 130, kEdges), {});
}

TEST(ExpertComputeTeam, ComputesNothingOnceCancelled) {
  constexpr size_t kEdges[] = {3};
  const TestBatch test(kMixed, 33, 35, 3, kEdges);
  ThreadTeam team(1);
  ExpertCompute compute(team, kernel_variants()[0], {});
  CancelToken token;
  token.cancel();
  std::vector<float> found(3 * 33, -1);
  const Status status = compute.run(test.jobs(), test.batch, found.data(), token);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Cancelled);
  EXPECT_EQ(found, std::vector<float>(3 * 33, -1));
}

}  // namespace
}  // namespace deltafin::memory
