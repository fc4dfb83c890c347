// Fixed slots for experts in memory, and which of them goes when another one comes. Knows nothing
// of files or arithmetic.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace deltafin::memory {

enum class CachePolicy : uint8_t {
  LeastRecentlyUsed,
  // Uses count, each half as much after kHeatHalfLife passes, also while an expert is not there:
  // an expert that was wanted once does not drive out one that is wanted often
  // (docs/decisions/0013-cache-policy.md).
  Heat,
};
// "lru", "heat"
const char* name_of(CachePolicy policy);

// A slot goes Empty -> Reading -> Resident -> (evicted) Reading ..., and back to Empty when a read
// fails. A leased slot is never evicted. Not thread-safe: the engine thread owns it.
class ExpertCache {
 public:
  using Slot = uint32_t;

  static constexpr double kHeatHalfLife = 8;  // passes

  // `key_count` = layers x experts; keys are dense indices.
  ExpertCache(uint32_t slot_count, size_t key_count, CachePolicy policy = CachePolicy::Heat,
              double half_life = kHeatHalfLife);

  uint32_t slot_count() const { return uint32_t(slots_.size()); }

  // A resident expert's slot, leased; empty when it is not there.
  std::optional<Slot> lease(size_t key);
  // A slot to read `key` into: an empty one, else the unleased one that is worth least (whose
  // expert is forgotten). Empty when every slot is leased or being read into. The slot counts as
  // leased.
  std::optional<Slot> start_read(size_t key);
  // The read arrived: the slot is resident and still leased by the caller.
  void read_done(Slot slot);
  // The read failed or was withdrawn: the slot is empty.
  void read_failed(Slot slot);
  // After a use, which counts.
  void release(Slot slot);
  // The same for an expert that nobody has used yet: it is the next to go.
  void release_unused(Slot slot);
  // Takes the coldest unleased slot out of use for good; empty when all are leased.
  std::optional<Slot> retire();
  // A pass has begun: what was used before is older now.
  void begin_pass() { ++now_; }

  // Whether `key` is there, or is being read.
  bool knows(size_t key) const { return slot_of_key_[key] != kNoSlot; }

 private:
  enum class State : uint8_t { Empty, Reading, Resident };
  static constexpr size_t kNoKey = ~size_t{0};
  static constexpr Slot kNoSlot = ~Slot{0};
  static constexpr double kWorthless = -std::numeric_limits<double>::infinity();

  struct Entry {
    State state = State::Empty;
    uint32_t lease_count = 0;
    size_t key = kNoKey;
    double worth = kWorthless;  // by which it lies in order_
  };

  void put_in_order(Slot slot, double worth);
  // Of an expert that was used just now.
  double worth_after_use(size_t key);

  const CachePolicy policy_;
  const double half_life_;
  std::vector<Entry> slots_;
  std::vector<Slot> slot_of_key_;
  std::vector<double>
      heat_of_key_;  // log2 of the heat at pass 0, which orders like that of any pass
  std::set<std::pair<double, Slot>> order_;  // unleased slots: the one that is worth least first
  uint64_t now_ = 0;                         // passes
  uint64_t uses_ = 0;
};

}  // namespace deltafin::memory
