// One large piece of memory, asked for once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/thread_team.h"

namespace deltafin::io {

// An anonymous mapping: zero-filled, aligned to 2 MiB and advised to use huge pages, because first
// touch and TLB misses are dear at the sizes of expert slots and trunks. Memory becomes real when
// it is touched. Movable; unmapped by the destructor.
class Arena {
 public:
  static constexpr uint64_t kAlignment = 2ull << 20;

  // `bytes` may be 0. Errors: OverBudget, naming the number, when the system refuses the mapping.
  static Result<Arena> map(uint64_t bytes);

  Arena() = default;  // empty
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  // Exactly as many bytes as were asked for. Valid until the arena dies; moving it moves no byte.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit Arena(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

// Makes `memory` real, all of it in parallel: first touch costs up to seconds a GiB, and a direct
// read into untouched pages runs at a third of the speed.
void touch(std::span<std::byte> memory, ThreadTeam& team);

// Lets the system have the whole pages in `memory`. They read as zeros afterwards.
void give_back(std::span<std::byte> memory);

}  // namespace deltafin::io
