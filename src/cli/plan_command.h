// deltafin plan: what would go where in memory, and how fast the model would run.
#pragma once

#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"

namespace deltafin::cli {

// As run_command.
Result<int> plan_command(const std::vector<std::string>& arguments, CancelToken& cancel);

}  // namespace deltafin::cli
