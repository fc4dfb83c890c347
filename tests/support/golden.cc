#include "support/golden.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace deltafin::test {

std::string source_path(const std::string& path) {
  return std::string(DELTAFIN_SOURCE_DIR) + "/" + path;
}

std::string golden_path(const std::string& name) { return source_path("tests/golden/" + name); }

Golden::Golden(const std::string& name) {
  const std::string folder = golden_path(name);
  std::ifstream header(folder + "/golden.json");
  std::ifstream body(folder + "/golden.bin", std::ios::binary);
  if (!header || !body) throw std::runtime_error("no golden data in " + folder);
  data_.assign(std::istreambuf_iterator<char>(body), {});
  const nlohmann::json json = nlohmann::json::parse(header);
  for (const auto& [key, value] : json.at("arrays").items())
    arrays_.push_back(
        {key, value.at("dtype"), value.at("shape"), value.at("offset"), value.at("bytes")});
}

bool Golden::has(const std::string& array) const {
  return std::ranges::any_of(arrays_, [&](const Array& a) { return a.name == array; });
}

const Golden::Array& Golden::find(const std::string& array) const {
  for (const Array& candidate : arrays_)
    if (candidate.name == array) return candidate;
  throw std::runtime_error("no golden array " + array);
}

template <class T>
std::vector<T> Golden::read(const std::string& array, const char* dtype) const {
  const Array& found = find(array);
  if (found.dtype != dtype) throw std::runtime_error(array + " is " + found.dtype);
  if (found.offset + found.bytes > data_.size()) throw std::runtime_error(array + " is cut short");
  std::vector<T> values(found.bytes / sizeof(T));
  std::memcpy(values.data(), data_.data() + found.offset, found.bytes);
  return values;
}

std::vector<float> Golden::f32(const std::string& array) const { return read<float>(array, "f32"); }
std::vector<double> Golden::f64(const std::string& array) const {
  return read<double>(array, "f64");
}
std::vector<int32_t> Golden::i32(const std::string& array) const {
  return read<int32_t>(array, "i32");
}
std::vector<uint8_t> Golden::u8(const std::string& array) const {
  return read<uint8_t>(array, "u8");
}
std::vector<size_t> Golden::shape(const std::string& array) const { return find(array).shape; }

}  // namespace deltafin::test
