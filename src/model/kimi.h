// Kimi K3 and Kimi-Linear: KDA and gated MLA layers, dense and (latent) mixture-of-experts
// feed-forward, attention residuals. Which of them a checkpoint has is its config's business, never
// its name's.
#pragma once

#include <memory>

#include "checkpoint/contract.h"
#include "model/model.h"

namespace deltafin::model {

// `contract` is of this family; `contract` and `trunk` must outlive the model. Errors: BadModel for
// values that contradict the family's mathematics, naming the tensor.
Result<std::unique_ptr<Model>> open_kimi(const checkpoint::ModelContract& contract,
                                         const memory::Trunk& trunk);

state::Layout kimi_state_layout(const checkpoint::ModelContract& contract);
memory::ExpertFunction kimi_expert_function(const checkpoint::KimiConfig& config);
uint64_t kimi_activation_bytes_per_row(const checkpoint::ModelContract& contract);

}  // namespace deltafin::model
