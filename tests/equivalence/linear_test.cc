// Rows through one matrix, larger than those of the golden models: every kernel variant, every
// team.
#include "model/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/philox.h"
#include "checkpoint/checkpoint.h"
#include "io/file.h"
#include "io/reader.h"
#include "numerics/inner_product.h"
#include "support/engine_fixture.h"
#include "support/golden.h"
#include "support/same_bits.h"
#include "support/wild_values.h"

namespace deltafin {
namespace {

using model::Context;
using model::PackedRows;
using model::Rows;
using model::Workspace;
using numerics::kernel_variants;
using numerics::Kernels;
using numerics::WeightFormat;
using numerics::WeightMatrix;
using test::expect_same_bits;
using test::TestMatrix;
using test::value_of;

class NoExperts final : public memory::ExpertStore {
 public:
  Status run(const memory::ExpertBatch&, std::span<float>, const CancelToken&,
             const std::function<void()>&) override {
    return fail(ErrorCode::Usage, "there are no experts here");
  }
  void expect(uint32_t, std::span<const uint32_t>) override {}
  bool wants_hints(uint32_t) const override { return false; }
  uint64_t give_back() override { return 0; }
  memory::ExpertCounters snapshot() const override { return {}; }
};

// What a context must name and a product never looks at.
struct Surroundings {
  Context context(ThreadTeam& team, const Kernels& kernels) {
    return {.team = team,
            .kernels = kernels,
            .trunk = *trunk,
            .experts = experts,
            .workspace = workspace,
            .cancel = cancel};
  }

  io::PosixStorage storage;
  CancelToken cancel;
  SystemClock clock;
  ThreadTeam one_thread{1};
  std::unique_ptr<io::Reader> reader = io::make_thread_reader({});
  checkpoint::Checkpoint checkpoint =
      value_of(checkpoint::Checkpoint::open(storage, test::golden_path("tiny-kimi-linear")));
  std::unique_ptr<memory::Trunk> trunk =
      value_of(memory::Trunk::load(checkpoint, *reader, one_thread, clock, {}, {}, cancel));
  NoExperts experts;
  Workspace workspace;
};

std::vector<float> run_linear(Context& context, const WeightMatrix& weights, std::vector<float>& x,
                              size_t count) {
  const Workspace::Scope scope(context.workspace);
  // Outputs lie further apart than they are wide, and what is between them is not ours.
  const size_t stride = weights.rows + 3;
  std::vector<float> padded(count * stride, std::numeric_limits<float>::infinity());
  PackedRows rows(context, Rows{x.data(), count, weights.cols, weights.cols});
  model::linear(context, weights, rows, Rows{padded.data(), count, weights.rows, stride});
  std::vector<float> y;
  for (size_t i = 0; i < padded.size(); ++i) {
    if (i % stride < weights.rows)
      y.push_back(padded[i]);
    else
      EXPECT_TRUE(std::isinf(padded[i])) << "written behind output " << i / stride;
  }
  return y;
}

void expect_definition(WeightFormat format, size_t rows, size_t cols,
                       std::span<const size_t> counts) {
  Surroundings surroundings;
  Random random(rows * 1000003 + cols);
  const TestMatrix test = test::random_matrix(random, format, rows, cols);
  std::vector<float> x = test::wild_floats(random, counts.back() * cols);
  std::vector<float> expected;
  for (size_t i = 0; i < counts.back(); ++i)
    for (size_t r = 0; r < rows; ++r)
      expected.push_back(numerics::inner_product(test.matrix, r, x.data() + i * cols));
  for (const size_t threads : {1u, 2u, 3u, 8u}) {
    ThreadTeam team(threads);
    for (const Kernels& kernels : kernel_variants()) {
      // The definition in another compilation: one thread is enough.
      if (kernels.name == std::string("baseline") && threads > 1) continue;
      Context context = surroundings.context(team, kernels);
      for (const size_t count : counts) {
        const std::vector<float> first(expected.begin(),
                                       expected.begin() + ptrdiff_t(count * rows));
        expect_same_bits(run_linear(context, test.matrix, x, count), first,
                         std::string(kernels.name) + " " + std::to_string(rows) + "x" +
                             std::to_string(cols) + ", rows " + std::to_string(count) +
                             ", threads " + std::to_string(threads));
      }
    }
  }
}

// A task takes 64 rows of W, so the last one has a single row. More columns of W than a stretch,
// and tails.
TEST(LinearTeam, EqualsTheDefinitionForEveryVariantAndTeam) {
  constexpr size_t kCounts[] = {1, 2, 5, 7, 23, 24, 25, 26, 27, 63, 64, 65, 66};
  expect_definition(WeightFormat::F32, 129, 551, kCounts);
  expect_definition(WeightFormat::Bf16, 129, 551, kCounts);
  expect_definition(WeightFormat::Mxfp4, 129, 672, kCounts);
}

TEST(LinearTeam, EqualsTheDefinitionForManyRows) {
  constexpr size_t kCounts[] = {130, 257};
  expect_definition(WeightFormat::F32, 67, 35, kCounts);
  expect_definition(WeightFormat::Bf16, 67, 71, kCounts);
  expect_definition(WeightFormat::Mxfp4, 67, 160, kCounts);
}

TEST(LinearTeamFull, EqualsTheDefinitionAtLargerSizes) {
  constexpr size_t kCounts[] = {1, 2, 5, 7, 23, 24, 25, 26, 27, 63, 64, 65, 66, 130, 257};
  expect_definition(WeightFormat::F32, 200, 1051, kCounts);
  expect_definition(WeightFormat::Bf16, 193, 1101, kCounts);
  expect_definition(WeightFormat::Mxfp4, 255, 1184, kCounts);
}

TEST(LinearTeam, ComputesNothingOnceCancelled) {
  Surroundings surroundings;
  surroundings.cancel.cancel();
  ThreadTeam team(2);
  Context context = surroundings.context(team, kernel_variants()[0]);
  Random random(1);
  const TestMatrix test = test::random_matrix(random, WeightFormat::F32, 70, 16);
  std::vector<float> x(16, 1);
  for (const float y : run_linear(context, test.matrix, x, 1)) EXPECT_TRUE(std::isinf(y));
}

}  // namespace
}  // namespace deltafin
