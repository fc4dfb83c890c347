// The tensors of the Kimi family, from sizes and kinds that parse_config has checked. Trunk order
// is the order in which a layer needs them: attention first, then feed-forward.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/contract.h"

namespace deltafin::checkpoint {

std::vector<TensorSpec> kimi_global_tensors(const TensorNames& names, const KimiConfig& kimi);
std::vector<TensorSpec> kimi_trunk_tensors(const TensorNames& names, const KimiConfig& kimi,
                                           uint32_t layer, LayerKinds kinds);

}  // namespace deltafin::checkpoint
