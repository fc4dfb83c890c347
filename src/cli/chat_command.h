// deltafin chat: a conversation with a model.
#pragma once

#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"

namespace deltafin::cli {

// The exit status, or an error. `cancel` is the token of the signal handlers.
Result<int> chat_command(const std::vector<std::string>& arguments, CancelToken& cancel);

}  // namespace deltafin::cli
