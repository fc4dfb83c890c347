// Blocks of queries, and attention over them, against a softmax in float64.
#include "model/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "support/same_bits.h"

namespace deltafin::model {
namespace {

using numerics::Kernels;

// ------------------------------------------------------------------------------------- blocks ---

struct Cut {
  size_t rows, groups, heads_per_group, threads;

  QueryBlocks blocks() const { return {rows, groups, heads_per_group, threads}; }
  std::string name() const {
    return std::to_string(rows) + " rows, " + std::to_string(groups) + " groups of " +
           std::to_string(heads_per_group) + ", threads " + std::to_string(threads);
  }
};

template <class Check>
void for_every_cut(Check check) {
  for (size_t rows = 1; rows <= 40; ++rows)
    for (const size_t groups : {1u, 2u, 3u, 8u})
      for (size_t heads = 1; heads <= 16; ++heads)
        for (size_t threads = 1; threads <= 9; ++threads) {
          const Cut cut{rows, groups, heads, threads};
          check(cut);
          if (testing::Test::HasFailure()) return;
        }
}

TEST(QueryBlocks, HaveEveryRowAndHeadOnce) {
  for_every_cut([](const Cut& cut) {
    const QueryBlocks blocks = cut.blocks();
    const size_t heads = cut.groups * cut.heads_per_group;
    std::vector<int> seen(cut.rows * heads);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const QueryBlock block = blocks[i];
      ASSERT_LE(block.first_row + block.row_count, cut.rows) << cut.name();
      ASSERT_LE(block.first_head + block.head_count, heads) << cut.name();
      for (size_t row = block.first_row; row < block.first_row + block.row_count; ++row)
        for (size_t head = block.first_head; head < block.first_head + block.head_count; ++head)
          ++seen[row * heads + head];
    }
    ASSERT_EQ(std::ranges::count(seen, 1), ptrdiff_t(seen.size())) << cut.name();
  });
}

TEST(QueryBlocks, AreOfOneGroupAndFitTheScratch) {
  for_every_cut([](const Cut& cut) {
    const QueryBlocks blocks = cut.blocks();
    for (size_t i = 0; i < blocks.size(); ++i) {
      const QueryBlock block = blocks[i];
      ASSERT_GT(block.size(), 0u) << cut.name();
      ASSERT_LE(block.size(), kQueriesAtOnce) << cut.name();
      ASSERT_LE(block.row_count, kQueryRows) << cut.name();
      const size_t last_head = block.first_head + block.head_count - 1;
      ASSERT_EQ(block.first_head / cut.heads_per_group, last_head / cut.heads_per_group)
          << cut.name();
    }
  });
}

// Otherwise a thread waits for the others, which matters most for one row.
TEST(QueryBlocks, AreEnoughForTheTeamWhereThereAreEnoughHeads) {
  for_every_cut([](const Cut& cut) {
    const size_t most = cut.groups * cut.heads_per_group * ((cut.rows + 7) / 8);
    // Half: the heads of a block are rounded up.
    ASSERT_GE(2 * cut.blocks().size(), std::min(most, cut.threads)) << cut.name();
  });
}

// ---------------------------------------------------------------------------------- attention ---

constexpr size_t kLayer = 0, kHeads = 6, kKeyDim = 20, kValueDim = 12, kRowWidth = 48;
// Keys and values with other columns before, between and behind them.
constexpr CacheColumns kColumns{.row_width = kRowWidth,
                                .first_key = 5,
                                .key_dim = kKeyDim,
                                .first_value = 30,
                                .value_dim = kValueDim};
constexpr float kScale = 0.4f;

// A cache with `base` committed positions and a pass of `rows` more.
class AttentionCase {
 public:
  AttentionCase(uint64_t base, size_t rows) : base_(base), rows_(rows), state_(layout_) {
    Random random(base * 1000 + rows);
    const auto number = [&random] { return 4 * random.uniform() - 2; };
    cache_.resize((base + rows) * kRowWidth);
    std::ranges::generate(cache_, number);
    queries_.resize(rows * kHeads * kKeyDim);
    std::ranges::generate(queries_, number);
    if (base > 0) {
      state::Transaction before(state_, base, state::ReplayInputs::Dropped);
      fill(before);
      before.commit(base);
    }
    transaction_.emplace(state_, rows, state::ReplayInputs::Dropped);
    fill(*transaction_);
  }

  // [row, head, value_dim], in blocks of so many rows and heads.
  std::vector<float> attend_in_blocks(const Kernels& kernels, size_t row_count,
                                      size_t head_count) const {
    std::vector<float> out(rows_ * kHeads * kValueDim);
    QueryScratch scratch;
    scratch.fit(kColumns);
    for (size_t row = 0; row < rows_; row += row_count)
      for (size_t head = 0; head < kHeads; head += head_count) {
        const QueryBlock block{row, std::min(row_count, rows_ - row), head,
                               std::min(head_count, kHeads - head)};
        const auto of_query = [&](size_t query) {
          return (row + query / block.head_count) * kHeads + head + query % block.head_count;
        };
        for (size_t query = 0; query < block.size(); ++query)
          std::copy_n(queries_.data() + of_query(query) * kKeyDim, kKeyDim,
                      scratch.queries.data() + query * kKeyDim);
        attend(kernels, *transaction_, kLayer, kColumns, kScale, block, scratch);
        for (size_t query = 0; query < block.size(); ++query)
          std::copy_n(scratch.attended.data() + query * kValueDim, kValueDim,
                      out.data() + of_query(query) * kValueDim);
      }
    return out;
  }

  std::vector<double> expected() const {
    std::vector<double> out;
    for (size_t row = 0; row < rows_; ++row)
      for (size_t head = 0; head < kHeads; ++head) {
        const float* query = queries_.data() + (row * kHeads + head) * kKeyDim;
        double total = 0;
        std::vector<double> sum(kValueDim);
        for (uint64_t position = 0; position <= base_ + row; ++position) {
          const float* cached = cache_.data() + position * kRowWidth;
          double score = 0;
          for (size_t i = 0; i < kKeyDim; ++i)
            score += double(query[i]) * double(cached[kColumns.first_key + i]);
          const double weight = std::exp(score * double(kScale));  // of modest size, by choice
          total += weight;
          for (size_t i = 0; i < kValueDim; ++i)
            sum[i] += weight * double(cached[kColumns.first_value + i]);
        }
        for (const double value : sum) out.push_back(value / total);
      }
    return out;
  }

 private:
  void fill(state::Transaction& transaction) const {
    for (uint64_t row = transaction.base(); row < transaction.base() + transaction.row_count();
         ++row)
      std::copy_n(cache_.data() + row * kRowWidth, kRowWidth, transaction.cache_row(kLayer, row));
  }

  const state::Layout layout_{.layers = {state::PagedLayout{.row_width = kRowWidth}}};
  uint64_t base_;
  size_t rows_;
  state::SequenceState state_;
  std::optional<state::Transaction> transaction_;
  std::vector<float> cache_, queries_;
};

// Positions 0..; within a page, over a border of pages, several pages, a page filled exactly.
constexpr std::pair<uint64_t, size_t> kCases[] = {{0, 1},    {0, 13},   {300, 7}, {511, 1},
                                                  {508, 10}, {512, 3},  {0, 530}, {1020, 9},
                                                  {1535, 1}, {1600, 24}};

TEST(Attend, IsASoftmaxOverThePositionsUpToTheQuerysOwn) {
  double worst = 0;
  for (const auto& [base, rows] : kCases) {
    const AttentionCase attention(base, rows);
    const std::vector<double> expected = attention.expected();
    for (const Kernels& kernels : numerics::kernel_variants()) {
      const std::vector<float> found = attention.attend_in_blocks(kernels, 4, kHeads);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i)
        worst = std::max(worst, std::fabs(double(found[i]) - expected[i]));
    }
  }
  EXPECT_LE(worst, 3e-6);
}

TEST(Attend, GivesTheSameBitsHoweverRowsAndHeadsAreCut) {
  for (const auto& [base, rows] : kCases) {
    const AttentionCase attention(base, rows);
    const std::vector<float> expected =
        attention.attend_in_blocks(numerics::kernel_variants()[0], 1, 1);
    for (const Kernels& kernels : numerics::kernel_variants())
      for (const auto& [row_count, head_count] :
           {std::pair<size_t, size_t>{1, 6}, {2, 5}, {3, 2}, {4, 6}, {8, 3}, {24, 1}})
        test::expect_same_bits(attention.attend_in_blocks(kernels, row_count, head_count), expected,
                               std::string(kernels.name) + ", base " + std::to_string(base) +
                                   ", blocks of " + std::to_string(row_count) + " rows and " +
                                   std::to_string(head_count) + " heads");
  }
}

}  // namespace
}  // namespace deltafin::model
