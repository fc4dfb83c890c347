// An array of floats as kernels like it.
#pragma once

#include <cstddef>
#include <memory>

namespace deltafin {

// Uninitialised floats at the start of a cache line, so that no vector load crosses one; large
// arrays are advised to use huge pages. Movable. Terminates when the system has no memory, as new
// does.
class Floats {
 public:
  static constexpr size_t kAlignment = 64;  // bytes

  Floats() = default;
  explicit Floats(size_t count);

  float* data() const { return floats_.get(); }
  size_t size() const { return size_; }

  // Makes room for at least `count`; what was there is lost when it has to grow.
  float* at_least(size_t count) {
    if (count > size_) *this = Floats(count);
    return data();
  }

 private:
  struct Free {
    void operator()(float* p) const;
  };
  std::unique_ptr<float[], Free> floats_;
  size_t size_ = 0;
};

}  // namespace deltafin
