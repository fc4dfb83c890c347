// Fixed slots for experts in memory, least recently used first out. Knows nothing of files or
// arithmetic.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

namespace deltafin::memory {

// A slot goes Empty -> Reading -> Resident -> (evicted) Reading ..., and back to Empty when a read
// fails. A leased slot is never evicted. Not thread-safe: the engine thread owns it.
class ExpertCache {
 public:
  using Slot = uint32_t;

  // `key_count` = layers x experts; keys are dense indices.
  ExpertCache(uint32_t slot_count, size_t key_count);

  uint32_t slot_count() const { return uint32_t(slots_.size()); }

  // A resident expert's slot, leased; empty when it is not there.
  std::optional<Slot> lease(size_t key);
  // A slot to read `key` into: an empty one, else the least recently used unleased one (whose
  // expert is forgotten). Empty when every slot is leased or being read into. The slot counts as
  // leased.
  std::optional<Slot> start_read(size_t key);
  // The read arrived: the slot is resident and still leased by the caller.
  void read_done(Slot slot);
  // The read failed or was withdrawn: the slot is empty.
  void read_failed(Slot slot);
  void release(Slot slot);
  // The same for an expert that nobody has used yet: it is the next to go.
  void release_unused(Slot slot);

  // Whether `key` is there, or is being read.
  bool knows(size_t key) const { return slot_of_key_[key] != kNoSlot; }

 private:
  enum class State : uint8_t { Empty, Reading, Resident };
  static constexpr size_t kNoKey = ~size_t{0};
  static constexpr Slot kNoSlot = ~Slot{0};

  struct Entry {
    State state = State::Empty;
    uint32_t lease_count = 0;
    size_t key = kNoKey;
    std::list<Slot>::iterator position;  // in order_
  };

  std::vector<Entry> slots_;
  std::vector<Slot> slot_of_key_;
  std::list<Slot> order_;  // unleased slots: empty ones and least recently used first
};

}  // namespace deltafin::memory
