// How much memory we may plan with: what somebody says, or what machine and containers leave.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/machine.h"
#include "base/result.h"

namespace deltafin::memory {

struct AutoBudget {};   // what this process may use, minus headroom
struct ShareOfUsable {  // a part of what this process may use
  double share = 1;     // in (0, 1]
};
using BudgetRule = std::variant<AutoBudget, ShareOfUsable, uint64_t>;  // or so many bytes

struct Budget {
  uint64_t bytes = 0;
  std::string reason;  // "14.9 GB usable, less 0.93 GB headroom", for people
  // Somebody asked for more than is there: reaching into it would page, or end the process.
  bool exceeds_machine = false;
};

// What AutoBudget leaves alone of `usable_bytes`.
uint64_t headroom_bytes(uint64_t usable_bytes);

// Errors: OverBudget, when the rule needs to know what is usable and this machine does not say.
Result<Budget> find_budget(const BudgetRule& rule, const MemoryShare& memory);

}  // namespace deltafin::memory
