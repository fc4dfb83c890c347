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
  std::ifstream(folder + "/golden.json") ? read_one_file(folder) : read_manifest(folder);
}

void Golden::read_one_file(const std::string& folder) {
  std::ifstream header(folder + "/golden.json");
  append(folder + "/golden.bin");
  const nlohmann::json json = nlohmann::json::parse(header);
  for (const auto& [key, value] : json.at("arrays").items())
    arrays_.push_back(
        {key, value.at("dtype"), value.at("shape"), value.at("offset"), value.at("bytes")});
}

// Prompts and greedy tokens stand in the manifest itself; here they become arrays p0.ids,
// p0.greedy.
void Golden::read_manifest(const std::string& folder) {
  std::ifstream file(folder + "/manifest.json");
  if (!file) throw std::runtime_error("no golden data in " + folder);
  const nlohmann::json json = nlohmann::json::parse(file);
  for (const auto& tensor : json.at("tensors")) {
    const size_t offset = data_.size();
    append(folder + "/" + tensor.at("file").get<std::string>());
    const bool is_float = tensor.at("dtype") == "float32";
    arrays_.push_back({tensor.at("name"), is_float ? "f32" : "i32", tensor.at("shape"), offset,
                       data_.size() - offset});
  }
  const nlohmann::json& prompts = json.at("prompts");
  for (size_t p = 0; p < prompts.size(); ++p)
    for (const auto& [key, name] : {std::pair("tokens", "ids"), std::pair("greedy", "greedy")}) {
      const std::vector<int32_t> ids = prompts[p].at(key);
      const size_t offset = data_.size(), bytes = ids.size() * sizeof(int32_t);
      data_.resize(offset + bytes);
      std::memcpy(data_.data() + offset, ids.data(), bytes);
      arrays_.push_back({"p" + std::to_string(p) + "." + name, "i32", {ids.size()}, offset, bytes});
    }
}

void Golden::append(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("no golden data " + path);
  data_.insert(data_.end(), std::istreambuf_iterator<char>(file), {});
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
