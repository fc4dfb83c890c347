// config.json -> ModelContract.
//
// Kimi K3 and Qwen3.5 keep their text model in text_config and prefix its tensors; Kimi-Linear,
// Qwen3, Qwen3-MoE and the text-only export of Qwen3.5 are flat. architectures.cc lists them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "checkpoint/contract.h"
#include "io/file.h"

namespace deltafin::checkpoint {

// Pure. Messages name the field, what was found and what was expected; the caller puts the file in
// front. Errors: BadModel.
Result<ModelContract> parse_config(std::string_view text);

// Reads and parses one file. Errors: BadModel, naming the path; Io.
Result<ModelContract> load_config(const io::Storage& storage, const std::string& path);

}  // namespace deltafin::checkpoint
