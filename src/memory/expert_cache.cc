#include "memory/expert_cache.h"

#include <cmath>

#include "base/check.h"

namespace deltafin::memory {

const char* name_of(CachePolicy policy) { return policy == CachePolicy::Heat ? "heat" : "lru"; }

ExpertCache::ExpertCache(uint32_t slot_count, size_t key_count, CachePolicy policy,
                         double half_life)
    : policy_(policy),
      half_life_(half_life),
      slots_(slot_count),
      slot_of_key_(key_count, kNoSlot),
      heat_of_key_(key_count, kWorthless) {
  for (Slot slot = 0; slot < slot_count; ++slot) put_in_order(slot, kWorthless);
}

void ExpertCache::put_in_order(Slot slot, double worth) {
  slots_[slot].worth = worth;
  order_.emplace(worth, slot);
}

// A heat h at pass t is h 2^-t/half_life of any later pass times a factor that is the same for all,
// so log2(h) + t/half_life orders experts at any time and changes only when they are used.
double ExpertCache::worth_after_use(size_t key) {
  if (policy_ == CachePolicy::LeastRecentlyUsed) return static_cast<double>(++uses_);
  const double age = static_cast<double>(now_) / half_life_;
  double& heat = heat_of_key_[key];
  heat = std::log2(std::exp2(heat - age) + 1) + age;
  return heat;
}

std::optional<ExpertCache::Slot> ExpertCache::lease(size_t key) {
  const Slot slot = slot_of_key_[key];
  if (slot == kNoSlot || slots_[slot].state != State::Resident) return std::nullopt;
  Entry& entry = slots_[slot];
  if (entry.lease_count++ == 0) order_.erase({entry.worth, slot});
  return slot;
}

std::optional<ExpertCache::Slot> ExpertCache::start_read(size_t key) {
  CHECK(slot_of_key_[key] == kNoSlot);
  if (order_.empty()) return std::nullopt;
  const Slot slot = order_.begin()->second;
  order_.erase(order_.begin());
  Entry& entry = slots_[slot];
  CHECK(entry.lease_count == 0 && entry.state != State::Reading);
  if (entry.key != kNoKey) slot_of_key_[entry.key] = kNoSlot;
  entry.state = State::Reading;
  entry.lease_count = 1;
  entry.key = key;
  slot_of_key_[key] = slot;
  return slot;
}

void ExpertCache::read_done(Slot slot) {
  CHECK(slots_[slot].state == State::Reading);
  slots_[slot].state = State::Resident;
}

void ExpertCache::read_failed(Slot slot) {
  Entry& entry = slots_[slot];
  CHECK(entry.state == State::Reading && entry.lease_count == 1);
  slot_of_key_[entry.key] = kNoSlot;
  entry.key = kNoKey;
  entry.state = State::Empty;
  entry.lease_count = 0;
  put_in_order(slot, kWorthless);
}

void ExpertCache::release(Slot slot) {
  Entry& entry = slots_[slot];
  CHECK(entry.state == State::Resident && entry.lease_count > 0);
  const double worth = worth_after_use(entry.key);
  if (--entry.lease_count == 0) put_in_order(slot, worth);
}

std::optional<ExpertCache::Slot> ExpertCache::retire() {
  if (order_.empty()) return std::nullopt;
  const Slot slot = order_.begin()->second;
  order_.erase(order_.begin());
  Entry& entry = slots_[slot];
  if (entry.key != kNoKey) slot_of_key_[entry.key] = kNoSlot;
  entry = {};
  return slot;
}

void ExpertCache::release_unused(Slot slot) {
  Entry& entry = slots_[slot];
  CHECK(entry.state == State::Resident && entry.lease_count > 0);
  if (--entry.lease_count == 0) put_in_order(slot, kWorthless);
}

}  // namespace deltafin::memory
