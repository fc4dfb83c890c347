// deltafin doctor: what this machine has, and what we would use of it.
#pragma once

#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"

namespace deltafin::cli {

// As run_command.
Result<int> doctor_command(const std::vector<std::string>& arguments, CancelToken& cancel);

}  // namespace deltafin::cli
