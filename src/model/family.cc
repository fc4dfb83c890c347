#include "model/family.h"

#include "model/kimi.h"
#include "model/qwen.h"

namespace deltafin::model {

using checkpoint::ModelContract;

Result<std::unique_ptr<Model>> open_model(const ModelContract& contract,
                                          const memory::Trunk& trunk) {
  if (contract.qwen() != nullptr) return open_qwen(contract, trunk);
  return open_kimi(contract, trunk);
}

state::Layout state_layout(const ModelContract& contract) {
  return contract.qwen() != nullptr ? qwen_state_layout(contract) : kimi_state_layout(contract);
}

uint64_t activation_bytes_per_row(const ModelContract& contract) {
  return contract.qwen() != nullptr ? qwen_activation_bytes_per_row(contract)
                                    : kimi_activation_bytes_per_row(contract);
}

memory::ExpertFunction expert_function(const ModelContract& contract) {
  if (contract.qwen() != nullptr) return {};  // SwiGLU
  return kimi_expert_function(*contract.kimi());
}

}  // namespace deltafin::model
