// deltafin logits: every position's logits, as numbers in a file.
#pragma once

#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"

namespace deltafin::cli {

// As run_command. When it fails or is cancelled, no file has the name that was asked for.
Result<int> logits_command(const std::vector<std::string>& arguments, CancelToken& cancel);

}  // namespace deltafin::cli
