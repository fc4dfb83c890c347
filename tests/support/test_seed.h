// The seed of random tests, which must show it when they fail. DELTAFIN_TEST_SEED replays or varies
// it.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace deltafin::test {

inline uint64_t test_seed() {
  const char* given = std::getenv("DELTAFIN_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : 1;
}

}  // namespace deltafin::test
