#include "io/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <utility>

namespace deltafin::io {
namespace {

uint64_t address(const Arena& arena) { return reinterpret_cast<uintptr_t>(arena.bytes().data()); }

// Whether the page at `at` is mapped in this process.
bool is_mapped(uint64_t at) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t dash = line.find('-');
    const uint64_t start = std::stoull(line.substr(0, dash), nullptr, 16);
    const uint64_t end = std::stoull(line.substr(dash + 1), nullptr, 16);
    if (start <= at && at < end) return true;
  }
  return false;
}

TEST(Arena, HoldsExactlyTheBytesAskedForZeroedAndAligned) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{4097}, Arena::kAlignment, Arena::kAlignment + 1,
                              5 * Arena::kAlignment - 1}) {
    const Arena arena = Arena::map(size).value();
    EXPECT_EQ(arena.bytes().size(), size);
    EXPECT_EQ(address(arena) % Arena::kAlignment, 0u) << size;
    EXPECT_EQ(arena.bytes().front(), std::byte{0});
    EXPECT_EQ(arena.bytes().back(), std::byte{0});
    arena.bytes().front() = std::byte{1};
    arena.bytes().back() = std::byte{2};
  }
}

TEST(Arena, MayBeEmpty) {
  EXPECT_TRUE(Arena::map(0).value().bytes().empty());
  EXPECT_TRUE(Arena().bytes().empty());
}

TEST(Arena, GivesItsMemoryBackWhenItDies) {
  uint64_t at = 0;
  {
    const Arena arena = Arena::map(64 * Arena::kAlignment).value();
    at = address(arena);
    EXPECT_TRUE(is_mapped(at));
    EXPECT_TRUE(is_mapped(at + 63 * Arena::kAlignment));
  }
  EXPECT_FALSE(is_mapped(at));
  EXPECT_FALSE(is_mapped(at + 63 * Arena::kAlignment));
}

TEST(Arena, MovesWithoutMovingABit) {
  Arena first = Arena::map(100).value();
  const uint64_t at = address(first);
  first.bytes()[99] = std::byte{7};
  Arena second = std::move(first);
  EXPECT_TRUE(first.bytes().empty());
  EXPECT_EQ(address(second), at);
  EXPECT_EQ(second.bytes()[99], std::byte{7});

  Arena third = Arena::map(200).value();
  third = std::move(second);
  EXPECT_EQ(address(third), at);
  EXPECT_EQ(third.bytes().size(), 100u);
}

TEST(Arena, RefusalNamesTheNumberOfBytes) {
  for (const uint64_t size : {uint64_t{1} << 60, UINT64_MAX - 1, UINT64_MAX}) {
    const Result<Arena> arena = Arena::map(size);
    ASSERT_FALSE(arena);
    EXPECT_EQ(arena.error().code, ErrorCode::OverBudget);
    EXPECT_THAT(arena.error().what, testing::HasSubstr(std::to_string(size) + " bytes"));
  }
}

}  // namespace
}  // namespace deltafin::io
