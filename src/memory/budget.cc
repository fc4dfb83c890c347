#include "memory/budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace deltafin::memory {

namespace {

// A budget that is a little too large costs far more than one that is a little too small: a machine
// that pages has been seen 8 times slower, and a sixteenth more experts saves a sixteenth of the
// reads at best. A sixteenth covers what grows with the memory: page tables (a five-hundredth), and
// the error of the kernel's own estimate, which counts caches that it may not want to drop. Above
// 4 GiB it would only be lost: what other programs do does not grow with the machine. Below 64 MiB
// it would not cover one burst of reads.
constexpr uint64_t kHeadroomShare = 16;
constexpr uint64_t kHeadroomLeast = 64ull << 20, kHeadroomMost = 4ull << 30;

std::string amount(uint64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

std::string source_of(const MemoryShare& memory, uint64_t usable) {
  const bool is_group = memory.limit && memory.limit->left_bytes() == usable;
  return is_group ? fmt::format("left below {}", memory.limit->file) : "available";
}

}  // namespace

uint64_t headroom_bytes(uint64_t usable_bytes) {
  return std::min(usable_bytes,
                  std::clamp(usable_bytes / kHeadroomShare, kHeadroomLeast, kHeadroomMost));
}

Result<Budget> find_budget(const BudgetRule& rule, const MemoryShare& memory) {
  const std::optional<uint64_t> usable = memory.usable_bytes();
  if (const uint64_t* bytes = std::get_if<uint64_t>(&rule))
    return Budget{.bytes = *bytes,
                  .reason = "as --memory says",
                  .exceeds_machine = usable && *bytes > *usable};
  if (!usable)
    return fail(ErrorCode::OverBudget,
                "this machine does not say how much memory there is\n  give --memory SIZE, such as "
                "24GB");
  const std::string source = amount(*usable) + " " + source_of(memory, *usable);
  if (const ShareOfUsable* part = std::get_if<ShareOfUsable>(&rule))
    return Budget{.bytes = static_cast<uint64_t>(part->share * static_cast<double>(*usable)),
                  .reason = fmt::format("{:.4g} % of {}", part->share * 100, source)};
  const uint64_t headroom = headroom_bytes(*usable);
  return Budget{.bytes = *usable - headroom,
                .reason = fmt::format("{}, less {} headroom", source, amount(headroom))};
}

}  // namespace deltafin::memory
