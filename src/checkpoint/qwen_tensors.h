// The tensors of the Qwen family, from sizes and kinds that parse_config has checked. Trunk order
// is the order in which a layer needs them: attention first, then feed-forward.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/contract.h"

namespace deltafin::checkpoint {

std::vector<TensorSpec> qwen_global_tensors(const TensorNames& names, const QwenConfig& qwen);
std::vector<TensorSpec> qwen_trunk_tensors(const TensorNames& names, const QwenConfig& qwen,
                                           uint32_t layer, LayerKinds kinds);

}  // namespace deltafin::checkpoint
