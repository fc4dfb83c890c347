// Qwen3.5-MoE, Qwen3-MoE and dense Qwen3: Gated DeltaNet and grouped-query attention layers, dense
// and mixture-of-experts feed-forward, plain residuals.
#pragma once

#include <memory>

#include "checkpoint/contract.h"
#include "model/model.h"

namespace deltafin::model {

// `contract` is of this family; `contract` and `trunk` must outlive the model.
std::unique_ptr<Model> open_qwen(const checkpoint::ModelContract& contract,
                                 const memory::Trunk& trunk);

state::Layout qwen_state_layout(const checkpoint::ModelContract& contract);
uint64_t qwen_activation_bytes_per_row(const checkpoint::ModelContract& contract);

}  // namespace deltafin::model
