// deltafin serve: an OpenAI-compatible server for one model.
#pragma once

#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"

namespace deltafin::cli {

Result<int> serve_command(const std::vector<std::string>& arguments, CancelToken& cancel);

}  // namespace deltafin::cli
