// quantization_config of a config.json: the one packed format that we read, or a refusal.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/config_fields.h"
#include "checkpoint/contract.h"

namespace deltafin::checkpoint {

// How routed experts are stored. The list of layers that the config calls not quantised is not used
// (K3's is incomplete): the tensors that are there decide, and they are checked one by one.
// Errors: BadModel, for anything but MXFP4 in groups of 32.
Result<ExpertFormat> parse_quantization(Fields fields, std::vector<std::string>& unknown_fields);

}  // namespace deltafin::checkpoint
