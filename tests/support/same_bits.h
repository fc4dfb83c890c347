// Exact means bit for bit: -0 is not +0, and a NaN equals only itself.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace deltafin::test {

inline void expect_same_bits(const std::vector<float>& found, const std::vector<float>& expected,
                             const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i]))
        << what << " element " << i << ": " << found[i] << " and " << expected[i];
}

}  // namespace deltafin::test
