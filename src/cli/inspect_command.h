// deltafin inspect: what a checkpoint is, how big, and whether it is all there.
#pragma once

#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"

namespace deltafin::cli {

// As run_command. The report is printed for a damaged checkpoint too; the exit status then is 3 (5
// when the operating system is to blame for all of it).
Result<int> inspect_command(const std::vector<std::string>& arguments, CancelToken& cancel);

}  // namespace deltafin::cli
