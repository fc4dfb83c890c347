// Other libraries at the work of product_bench: OpenBLAS (f32) and oneDNN (f32; BF16 weights, for
// which it wants BF16 activations too). Neither knows MXFP4: experts are what a user of theirs
// would have, the same matrices widened. LibTorch calls one of the two.
#include <benchmark/benchmark.h>
#include <cblas.h>
#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "roofs.h"
#include "row.h"
#include "workload.h"

namespace deltafin::bench {
namespace {

using numerics::WeightFormat;
using numerics::WeightMatrix;

WeightPool& pool_of(WeightFormat format, const Shape& shape) {
  static std::map<std::pair<WeightFormat, size_t>, WeightPool> pools;
  return pools.try_emplace({format, shape.rows}, format, std::span(&shape, 1)).first->second;
}

void set_row(benchmark::State& state, const WeightMatrix& weights) {
  static ReadRoof read_roof;
  ThreadTeam& team = team_of(size_t(state.range(1)));
  set_counters(state, double(weight_bytes(weights)),
               2.0 * double(weights.rows * weights.cols) * double(state.range(0)),
               read_roof.measure(team), fma_roof(team, widest_vector_bits()));
}

const float* floats_of(const WeightMatrix& weights) {
  return reinterpret_cast<const float*>(weights.data);
}

void openblas(benchmark::State& state, const Shape& shape) {
  openblas_set_num_threads(int(state.range(1)));
  const int columns = int(state.range(0)), rows = int(shape.rows), cols = int(shape.cols);
  WeightPool& pool = pool_of(WeightFormat::F32, shape);
  const Floats x = activations(shape.cols * size_t(columns)), y(shape.rows * size_t(columns));
  for (auto _ : state) {
    const float* weights = floats_of(pool.next());
    if (columns == 1) {
      cblas_sgemv(CblasRowMajor, CblasNoTrans, rows, cols, 1, weights, cols, x.data(), 1, 0,
                  y.data(), 1);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, columns, rows, cols, 1, x.data(), cols,
                  weights, cols, 0, y.data(), rows);
    }
  }
  set_row(state, pool.matrices().front());
}

// oneDNN has as many threads as OpenMP gives. Its own copy of OpenMP is not ours to link to.
void set_openmp_threads(int count) {
  if (auto* const set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
    set(count);
}

dnnl::engine& cpu() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// y = x W^T, with the weights in the layout that oneDNN likes best for so many columns.
class DnnlProduct {
 public:
  DnnlProduct(WeightPool& pool, dnnl::memory::data_type type, const Shape& shape, int64_t columns)
      : stream_(cpu()), x_floats_(activations(shape.cols * size_t(columns))) {
    using dnnl::memory;
    using Tag = memory::format_tag;
    const int64_t rows = int64_t(shape.rows), cols = int64_t(shape.cols);
    const memory::desc given({columns, cols}, memory::data_type::f32, Tag::ab);
    const memory::desc stored({cols, rows}, type, Tag::ba);
    const dnnl::matmul::primitive_desc plan(
        dnnl::matmul::desc(memory::desc({columns, cols}, type, Tag::ab),
                           memory::desc({cols, rows}, type, Tag::any),
                           memory::desc({columns, rows}, memory::data_type::f32, Tag::ab)),
        cpu());
    product_ = dnnl::matmul(plan);
    x_ = copy(memory(given, cpu(), x_floats_.data()), plan.src_desc());
    y_ = memory(plan.dst_desc(), cpu());
    for (const WeightMatrix& matrix : pool.matrices())
      weights_.push_back(
          copy(memory(stored, cpu(), const_cast<std::byte*>(matrix.data)), plan.weights_desc()));
  }

  void run() {
    product_.execute(stream_, {{DNNL_ARG_SRC, x_},
                               {DNNL_ARG_WEIGHTS, weights_[next_++ % weights_.size()]},
                               {DNNL_ARG_DST, y_}});
    stream_.wait();
  }

 private:
  // The same values in another layout, in huge pages like ours.
  dnnl::memory copy(dnnl::memory from, const dnnl::memory::desc& layout) {
    pages_.emplace_back(layout.get_size() / sizeof(float) + 1);
    dnnl::memory to(layout, cpu(), pages_.back().data());
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
    return to;
  }

  dnnl::stream stream_;
  Floats x_floats_;
  std::vector<Floats> pages_;
  dnnl::matmul product_;
  dnnl::memory x_, y_;
  std::vector<dnnl::memory> weights_;
  size_t next_ = 0;
};

void onednn(benchmark::State& state, dnnl::memory::data_type type, const Shape& shape) {
  set_openmp_threads(int(state.range(1)));
  WeightPool& pool = pool_of(
      type == dnnl::memory::data_type::bf16 ? WeightFormat::Bf16 : WeightFormat::F32, shape);
  // Repetitions share it: bringing the weights into their layout takes longer than a row.
  static std::unique_ptr<DnnlProduct> product;
  static std::tuple<dnnl::memory::data_type, size_t, int64_t, int64_t> made_for;
  const std::tuple wanted(type, shape.rows, state.range(0), state.range(1));
  if (product == nullptr || made_for != wanted) {
    product.reset();
    product = std::make_unique<DnnlProduct>(pool, type, shape, state.range(0));
    made_for = wanted;
  }
  for (auto _ : state) product->run();
  set_row(state, pool.matrices().front());
}

const bool registered = [] {
  using Type = dnnl::memory::data_type;
  const auto add = [](const std::string& name, auto function, auto... arguments) {
    auto* rows = benchmark::RegisterBenchmark(name.c_str(), function, arguments...);
    rows->ArgNames({"columns", "cores"})->UseRealTime();
    for (const size_t columns : kColumnCounts)
      for (const size_t cores : core_counts()) rows->Args({int64_t(columns), int64_t(cores)});
  };
  for (const auto& [name, shape] : {std::pair("trunk", kTrunk), std::pair("expert", kExpertUp)}) {
    add(std::string("openblas/f32/") + name, openblas, shape);
    add(std::string("onednn/f32/") + name, onednn, Type::f32, shape);
    add(std::string("onednn/bf16/") + name, onednn, Type::bf16, shape);
  }
  return true;
}();

}  // namespace
}  // namespace deltafin::bench
