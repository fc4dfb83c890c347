#include "base/floats.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace deltafin {
namespace {

TEST(Floats, StartACacheLineAtEverySize) {
  for (const size_t count : {1u, 15u, 16u, 1000u, (1u << 19) + 1}) {
    const Floats floats(count);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(floats.data()) % Floats::kAlignment, 0u) << count;
    EXPECT_EQ(floats.size(), count);
    floats.data()[0] = 1;
    floats.data()[count - 1] = 2;
  }
}

TEST(Floats, KeepTheirMemoryUntilTheyMustGrow) {
  Floats floats;
  EXPECT_EQ(floats.data(), nullptr);
  float* first = floats.at_least(100);
  EXPECT_EQ(floats.at_least(50), first);
  EXPECT_EQ(floats.size(), 100u);
  floats.at_least(101);
  EXPECT_EQ(floats.size(), 101u);
  const Floats moved = std::move(floats);
  EXPECT_EQ(moved.size(), 101u);
}

}  // namespace
}  // namespace deltafin
