// What products are measured with: weights that come from RAM, and activations of sane size.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/floats.h"
#include "base/thread_team.h"
#include "io/arena.h"
#include "numerics/kernels.h"

namespace deltafin::bench {

struct Shape {
  size_t rows, cols;
};

// A large matrix of the trunk, and the two of an expert (up or gate, and down) of Kimi K3.
inline constexpr Shape kTrunk{12288, 7168};
inline constexpr Shape kExpertUp{3072, 3584};
inline constexpr Shape kExpertDown{3584, 3072};

// The columns of one product: 1 is decode, 2 to 16 the rows an expert gets in a prefill, more is
// the trunk in a prefill.
inline constexpr size_t kColumnCounts[] = {1, 2, 4, 8, 16, 64, 256};

// Matrices to take in turn, in huge pages and without padding between them. Together at least
// kBytes, so that none is still in a last-level cache when its turn comes again.
class WeightPool {
 public:
  static constexpr size_t kBytes = 448ull << 20;

  // Random weights: BF16 and F32 with magnitudes in [0.5, 1), MXFP4 with any codes and scales
  // 118..124. The shapes alternate.
  WeightPool(numerics::WeightFormat format, std::span<const Shape> shapes);

  const numerics::WeightMatrix& next() { return matrices_[next_++ % matrices_.size()]; }
  std::span<const numerics::WeightMatrix> matrices() const { return matrices_; }

 private:
  io::Arena memory_;
  std::vector<numerics::WeightMatrix> matrices_;
  size_t next_ = 0;
};

// What a product reads of a matrix, scales included.
size_t weight_bytes(const numerics::WeightMatrix& matrix);

// `count` pseudo-random values in [-1, 1).
Floats activations(size_t count);

// Kernels::product, or another function that does its work.
using Product = decltype(numerics::Kernels::product);

// The activations of a product, packed for `kernels`, and where its result goes.
struct Columns {
  Columns(const numerics::Kernels& kernels, const numerics::WeightMatrix& weights,
          size_t column_count);

  size_t count, stride;
  Floats packed, y;
};

// One product, split over the team as model/linear.cc does.
void multiply(ThreadTeam& team, Product product, const numerics::WeightMatrix& weights,
              const Columns& columns);

// Thread counts to measure with: 1, and all cores where there are more.
std::vector<size_t> core_counts();

// The team of so many threads. It lives as long as the program.
ThreadTeam& team_of(size_t thread_count);

}  // namespace deltafin::bench
