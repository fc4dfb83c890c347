// deltafin run: continues a prompt.
#pragma once

#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"

namespace deltafin::cli {

// `arguments` without the command's name. Returns the exit status when everything that there is to
// say has been said. `cancel` ends it early, keeping what was generated; it may set `cancel`
// itself.
Result<int> run_command(const std::vector<std::string>& arguments, CancelToken& cancel);

}  // namespace deltafin::cli
