#include "memory/expert_cache.h"

#include "base/check.h"

namespace deltafin::memory {

ExpertCache::ExpertCache(uint32_t slot_count, size_t key_count)
    : slots_(slot_count), slot_of_key_(key_count, kNoSlot) {
  for (Slot slot = 0; slot < slot_count; ++slot)
    slots_[slot].position = order_.insert(order_.end(), slot);
}

std::optional<ExpertCache::Slot> ExpertCache::lease(size_t key) {
  const Slot slot = slot_of_key_[key];
  if (slot == kNoSlot || slots_[slot].state != State::Resident) return std::nullopt;
  Entry& entry = slots_[slot];
  if (entry.lease_count++ == 0) order_.erase(entry.position);
  return slot;
}

std::optional<ExpertCache::Slot> ExpertCache::start_read(size_t key) {
  CHECK(slot_of_key_[key] == kNoSlot);
  if (order_.empty()) return std::nullopt;
  const Slot slot = order_.front();
  order_.pop_front();
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
  entry.position = order_.insert(order_.begin(), slot);
}

void ExpertCache::release(Slot slot) {
  Entry& entry = slots_[slot];
  CHECK(entry.state == State::Resident && entry.lease_count > 0);
  if (--entry.lease_count == 0) entry.position = order_.insert(order_.end(), slot);
}

void ExpertCache::release_unused(Slot slot) {
  Entry& entry = slots_[slot];
  CHECK(entry.state == State::Resident && entry.lease_count > 0);
  if (--entry.lease_count == 0) entry.position = order_.insert(order_.begin(), slot);
}

}  // namespace deltafin::memory
