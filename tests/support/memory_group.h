// A control group that limits the memory of what runs in it, with the kernel as judge: whatever
// needs more is killed. cgroup v1, whose groups may be made below one that has processes.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace deltafin::test {

class MemoryGroup {
 public:
  // A group below our own. Pages of files count too, but the kernel drops them before it kills.
  // Errors: where it cannot be made, with the reason: no such controller, not root.
  static Result<MemoryGroup> make(uint64_t limit_bytes);
  // Nothing runs in it any more.
  ~MemoryGroup();
  MemoryGroup(MemoryGroup&& other) noexcept;
  MemoryGroup& operator=(MemoryGroup&&) = delete;

  // A process that writes "0" there moves itself into the group, and its later pages count.
  std::string entrance() const { return folder_ + "/cgroup.procs"; }
  uint64_t limit_bytes() const { return limit_bytes_; }

  uint64_t kill_count() const;  // processes that the kernel has killed for memory
  // The most that was charged at any time, pages of files included.
  uint64_t peak_bytes() const;
  // What is charged now and is no page of a file: memory of processes, and of the kernel for them.
  uint64_t held_bytes() const;

 private:
  MemoryGroup(std::string folder, uint64_t limit_bytes)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

  std::string folder_;
  uint64_t limit_bytes_;
};

}  // namespace deltafin::test
