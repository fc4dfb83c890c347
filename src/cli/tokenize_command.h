// deltafin tokenize: text to token ids and back, without the model.
#pragma once

#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"

namespace deltafin::cli {

// As run_command. Opens no file but those of the tokenizer.
Result<int> tokenize_command(const std::vector<std::string>& arguments, CancelToken& cancel);

}  // namespace deltafin::cli
