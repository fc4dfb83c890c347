// Activations of a pass: row-major f32, one row per token.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/floats.h"

namespace deltafin::model {

// A view of `count` rows of `width` floats, `stride` apart. Does not own them.
struct Rows {
  float* data = nullptr;
  size_t count = 0;
  size_t width = 0;
  size_t stride = 0;

  float* row(size_t index) const { return data + index * stride; }
  Rows slice(size_t first, size_t n) const { return {row(first), n, width, stride}; }
  // The same rows, only columns [first, first + n).
  Rows columns(size_t first, size_t n) const { return {data + first, count, n, stride}; }
};

// Rows that own their memory and live as long as a pass.
class OwnedRows {
 public:
  OwnedRows() = default;
  OwnedRows(size_t count, size_t width) : floats_(count * width), count_(count), width_(width) {}
  Rows view() const { return {floats_.data(), count_, width_, width_}; }

 private:
  Floats floats_;
  size_t count_ = 0, width_ = 0;
};

// Scratch rows for the length of one layer. Memory is kept from layer to layer and pass to pass,
// since the first touch of fresh pages costs more than the arithmetic on them.
class Workspace {
 public:
  // Room for takes of so many bytes together, in one piece: takes of other sizes than before then
  // leave no gaps. Nothing is taken now. Costs no memory before it is used.
  void reserve(uint64_t bytes) {
    CHECK(block_ == 0 && used_ == 0);
    const size_t floats =
        std::max<size_t>((bytes + sizeof(float) - 1) / sizeof(float), kBlockFloats);
    if (!blocks_.empty() && blocks_.front().size() >= floats) return;
    blocks_.clear();  // before there is a larger one
    blocks_.emplace_back(floats);
  }

  // Uninitialised rows that start a cache line, valid until the Scope in which they were taken
  // ends.
  Rows take(size_t count, size_t width) {
    const size_t floats = (count * width + 15) / 16 * 16;
    while (block_ < blocks_.size() && used_ + floats > blocks_[block_].size()) {
      ++block_;
      used_ = 0;
    }
    if (block_ == blocks_.size()) {
      const size_t size = floats > kBlockFloats ? floats : kBlockFloats;
      blocks_.emplace_back(size);
      used_ = 0;
    }
    float* data = blocks_[block_].data() + used_;
    used_ += floats;
    return {data, count, width, width};
  }

  // What is held, in use or not.
  uint64_t bytes() const {
    uint64_t floats = 0;
    for (const Floats& block : blocks_) floats += block.size();
    return floats * sizeof(float);
  }

  class Scope {
   public:
    explicit Scope(Workspace& workspace)
        : workspace_(workspace), block_(workspace.block_), used_(workspace.used_) {}
    ~Scope() {
      workspace_.block_ = block_;
      workspace_.used_ = used_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Workspace& workspace_;
    size_t block_, used_;
  };

 private:
  static constexpr size_t kBlockFloats = size_t{1} << 20;
  std::vector<Floats> blocks_;
  size_t block_ = 0, used_ = 0;
};

}  // namespace deltafin::model
