// Reads the golden data under tests/golden: arrays computed in float64 by the reference
// (tests/golden/README.md says by whom and how).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace deltafin::test {

// A path under the source tree, and tests/golden/<name>.
std::string source_path(const std::string& path);
std::string golden_path(const std::string& name);

class Golden {
 public:
  // golden.json and golden.bin of tests/golden/<name>, or the manifest.json there and the files it
  // names. Throws when they are not there.
  explicit Golden(const std::string& name);

  bool has(const std::string& array) const;
  std::vector<float> f32(const std::string& array) const;
  std::vector<double> f64(const std::string& array) const;
  std::vector<int32_t> i32(const std::string& array) const;
  std::vector<uint8_t> u8(const std::string& array) const;
  std::vector<size_t> shape(const std::string& array) const;

 private:
  struct Array {
    std::string name, dtype;
    std::vector<size_t> shape;
    size_t offset = 0, bytes = 0;
  };
  void read_one_file(const std::string& folder);
  void read_manifest(const std::string& folder);
  void append(const std::string& path);
  const Array& find(const std::string& array) const;
  template <class T>
  std::vector<T> read(const std::string& array, const char* dtype) const;

  std::vector<Array> arrays_;
  std::vector<char> data_;
};

}  // namespace deltafin::test
