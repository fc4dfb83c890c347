#include "memory/expert_cache.h"

#include <gtest/gtest.h>

namespace deltafin::memory {
namespace {

ExpertCache::Slot bring_in(ExpertCache& cache, size_t key) {
  const ExpertCache::Slot slot = cache.start_read(key).value();
  cache.read_done(slot);
  cache.release(slot);
  return slot;
}

bool holds(ExpertCache& cache, size_t key) {
  const std::optional<ExpertCache::Slot> slot = cache.lease(key);
  if (slot) cache.release(*slot);
  return slot.has_value();
}

TEST(ExpertCache, EvictsTheLeastRecentlyUsed) {
  ExpertCache cache(2, 10, CachePolicy::LeastRecentlyUsed);
  bring_in(cache, 1);
  bring_in(cache, 2);
  EXPECT_TRUE(holds(cache, 1));  // a use: 2 is now the oldest
  bring_in(cache, 3);
  EXPECT_TRUE(holds(cache, 1));
  EXPECT_FALSE(holds(cache, 2));
  EXPECT_TRUE(holds(cache, 3));
}

TEST(ExpertCache, NeverEvictsALeasedSlot) {
  ExpertCache cache(2, 10);
  bring_in(cache, 1);
  bring_in(cache, 2);
  const ExpertCache::Slot first = cache.lease(1).value(), second = cache.lease(2).value();
  EXPECT_FALSE(cache.start_read(3).has_value());
  cache.release(first);
  EXPECT_EQ(cache.start_read(3), first);
  cache.read_failed(first);
  cache.release(second);
}

TEST(ExpertCache, DoesNotShowAnExpertThatIsStillBeingRead) {
  ExpertCache cache(1, 10);
  const ExpertCache::Slot slot = cache.start_read(4).value();
  EXPECT_FALSE(cache.lease(4).has_value());
  cache.read_done(slot);
  cache.release(slot);
  EXPECT_TRUE(holds(cache, 4));
}

TEST(ExpertCache, ForgetsAFailedReadAndUsesItsSlotFirst) {
  ExpertCache cache(2, 10);
  bring_in(cache, 1);
  const ExpertCache::Slot slot = cache.start_read(2).value();
  cache.read_failed(slot);
  EXPECT_FALSE(holds(cache, 2));
  EXPECT_EQ(cache.start_read(3), slot);
  EXPECT_TRUE(holds(cache, 1));
}

TEST(ExpertCache, CountsLeases) {
  ExpertCache cache(1, 10);
  const ExpertCache::Slot slot = bring_in(cache, 1);
  cache.lease(1).value();
  cache.lease(1).value();
  cache.release(slot);
  EXPECT_FALSE(cache.start_read(2).has_value());
  cache.release(slot);
  EXPECT_TRUE(cache.start_read(2).has_value());
}

TEST(ExpertCacheDeathTest, ReleaseOfWhatIsNotLeasedIsABug) {
  ExpertCache cache(1, 10);
  const ExpertCache::Slot slot = bring_in(cache, 1);
  EXPECT_DEATH(cache.release(slot), "lease_count > 0");
}

TEST(ExpertCache, KeepsWhatIsWantedOften) {
  ExpertCache cache(2, 10, CachePolicy::Heat);
  bring_in(cache, 1);
  for (int pass = 0; pass < 4; ++pass) {
    cache.begin_pass();
    EXPECT_TRUE(holds(cache, 1));
  }
  // Experts that come by once drive out each other.
  for (const size_t key : {2u, 3u, 4u, 5u}) bring_in(cache, key);
  EXPECT_TRUE(holds(cache, 1));
  EXPECT_TRUE(holds(cache, 5));
}

TEST(ExpertCache, ForgetsWhatWasWantedLongAgo) {
  ExpertCache cache(2, 10, CachePolicy::Heat, 4);
  for (int i = 0; i < 8; ++i) i == 0 ? void(bring_in(cache, 1)) : void(holds(cache, 1));
  for (int pass = 0; pass < 100; ++pass) cache.begin_pass();
  bring_in(cache, 2);
  EXPECT_TRUE(holds(cache, 2));
  bring_in(cache, 3);
  EXPECT_FALSE(holds(cache, 1));
}

TEST(ExpertCache, RemembersTheHeatOfAnExpertThatWasEvicted) {
  ExpertCache cache(2, 10, CachePolicy::Heat);
  for (int i = 0; i < 9; ++i) i == 0 ? void(bring_in(cache, 1)) : void(holds(cache, 1));
  for (int i = 0; i < 2; ++i) i == 0 ? void(bring_in(cache, 2)) : void(holds(cache, 2));
  bring_in(cache, 3);  // instead of 2
  bring_in(cache, 2);  // instead of 3, and with three uses now
  bring_in(cache, 4);  // instead of 2
  EXPECT_TRUE(cache.start_read(2).has_value());
  EXPECT_TRUE(holds(cache, 1));
}

TEST(ExpertCache, RetiresTheColdestForGood) {
  ExpertCache cache(3, 10);
  bring_in(cache, 1);
  EXPECT_TRUE(holds(cache, 1));
  const ExpertCache::Slot cold = bring_in(cache, 2);
  const ExpertCache::Slot leased = cache.start_read(3).value();
  EXPECT_EQ(cache.retire(), cold);
  EXPECT_FALSE(cache.knows(2));
  EXPECT_TRUE(cache.retire().has_value());
  EXPECT_EQ(cache.retire(), std::nullopt);  // the last one is leased
  cache.read_done(leased);
  cache.release(leased);
  EXPECT_EQ(bring_in(cache, 2), leased);
}

TEST(ExpertCache, FirstGivesUpWhatNobodyHasUsed) {
  for (const CachePolicy policy : {CachePolicy::LeastRecentlyUsed, CachePolicy::Heat}) {
    ExpertCache cache(2, 10, policy);
    bring_in(cache, 1);
    const ExpertCache::Slot slot = cache.start_read(2).value();
    cache.read_done(slot);
    cache.release_unused(slot);
    bring_in(cache, 3);
    EXPECT_TRUE(holds(cache, 1)) << name_of(policy);
    EXPECT_FALSE(cache.knows(2)) << name_of(policy);
  }
}

}  // namespace
}  // namespace deltafin::memory
