// What this process may use of the machine: processors and memory, and which limit binds.
//
// A container or a job scheduler rarely gives a process the whole machine. It narrows the affinity
// mask (cpusets end up there too), sets a quota of processor time, or limits memory, for our own
// control group or for any above it. More threads than that only wait for each other, and more
// memory than that ends the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deltafin {

// Processor time per time that a control group may use.
struct CpuQuota {
  double processors = 0;  // 1.5: one and a half
  std::string file;       // that says so
};

struct CpuShare {
  size_t online_count = 1;        // processors of the machine, SMT siblings included
  size_t allowed_count = 1;       // those in the affinity mask
  size_t core_count = 1;          // physical cores of those
  std::optional<CpuQuota> quota;  // the tightest

  // The threads worth starting: one for each core, no more than the quota feeds all the time. At
  // least 1, at most limits::kThreads.
  size_t usable_core_count() const;
};

struct MemoryLimit {
  uint64_t bytes = 0;       // the group may use
  uint64_t used_bytes = 0;  // and uses, without file pages that the kernel can drop
  std::string file;         // that says so
  uint64_t left_bytes() const { return bytes > used_bytes ? bytes - used_bytes : 0; }
};

struct MemoryShare {
  std::optional<uint64_t> total_bytes;      // of the machine
  std::optional<uint64_t> available_bytes;  // without paging: free, or file pages to drop
  // Of the control group with the least left; none when no group has less than the machine.
  std::optional<MemoryLimit> limit;

  // What we may still take. Empty when nothing is known.
  std::optional<uint64_t> usable_bytes() const;
};

enum class HugePages : uint8_t { Always, Advised, Never, Unknown };

// "always", "madvise", "never", "unknown"
const char* name_of(HugePages state);

class Machine {
 public:
  // The one we run on.
  Machine();
  // For tests: /proc and /sys are looked for under `root`; `allowed` are the numbers of the
  // processors in the affinity mask.
  Machine(std::string root, std::vector<size_t> allowed);

  // Each of these reads the files anew. What cannot be read or understood counts as no limit: we
  // would rather run slowly than not at all.
  CpuShare cpu() const;
  MemoryShare memory() const;
  // Whether anonymous memory gets transparent huge pages: without them, a walk through gigabytes of
  // weights misses the TLB at every page.
  HugePages huge_pages() const;
  // The memory that this process has in use now, and the most it has had; empty where the kernel
  // does not say.
  std::optional<uint64_t> resident_bytes() const;
  std::optional<uint64_t> peak_resident_bytes() const;
  // As the processor calls itself; empty where it does not.
  std::string processor_name() const;

 private:
  std::string root_;
  std::vector<size_t> allowed_;
};

// Machine().cpu().usable_core_count()
size_t usable_core_count();

// "0-3,8" -> {0, 1, 2, 3, 8}, the kernel's way to write a set of processors. Empty when it is not
// one.
std::vector<size_t> parse_processor_list(std::string_view text);

}  // namespace deltafin
