// Ids that published tokenizers gave. The data is others', so it is not in the repository:
// DELTAFIN_TEST_DATA names the folder that has it, and without it these tests skip.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "io/file.h"

namespace deltafin::text {

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

class ThirdPartyData : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("DELTAFIN_TEST_DATA");
    if (data == nullptr)
      GTEST_SKIP() << "DELTAFIN_TEST_DATA does not name a folder with tokenizers/";
    folder_ = io::join_path(data, "tokenizers");
  }

  std::string read(const std::string& name) const {
    constexpr uint64_t kBytesMax = 64ull << 20;
    return io::read_text(io::PosixStorage(), io::join_path(folder_, name), kBytesMax).value();
  }
  nlohmann::json read_json(const std::string& name) const {
    return nlohmann::json::parse(read(name));
  }

 private:
  std::string folder_;
};

}  // namespace deltafin::text
