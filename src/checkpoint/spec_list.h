// Collects the tensors of one layer (or of the model) under a common name prefix. Only the files
// that list a family's tensors use this.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "checkpoint/tensor.h"

namespace deltafin::checkpoint {

class SpecList {
 public:
  explicit SpecList(std::string prefix) : prefix_(std::move(prefix)) {}

  void matrix(TensorRole role, const std::string& name, uint64_t rows, uint64_t cols) {
    add(role, TensorKind::Matrix, name, {{rows, cols}});
  }
  void vector(TensorRole role, const std::string& name, uint64_t size,
              DType published = DType::BF16) {
    add(role, TensorKind::Vector, name, {{size}}, published);
  }
  // A vector that is stored as the one row of a matrix.
  void row(TensorRole role, const std::string& name, uint64_t size) {
    add(role, TensorKind::Vector, name, {{1, size}});
  }
  void add(TensorRole role, TensorKind kind, const std::string& name,
           std::vector<std::vector<uint64_t>> shapes, DType published = DType::BF16) {
    specs_.push_back({.role = role,
                      .kind = kind,
                      .name = prefix_ + name,
                      .shapes = std::move(shapes),
                      .published = published});
  }
  // The tensor added last need not be there.
  void make_last_optional() { specs_.back().optional = true; }
  std::vector<TensorSpec> take() { return std::move(specs_); }

 private:
  std::string prefix_;
  std::vector<TensorSpec> specs_;
};

}  // namespace deltafin::checkpoint
