// A contract's family: the one place that knows them all.
#pragma once

#include <memory>

#include "checkpoint/contract.h"
#include "model/model.h"

namespace deltafin::model {

// The model of `contract`; both references must outlive it. Errors: BadModel for values that
// contradict the family's mathematics, naming the tensor.
Result<std::unique_ptr<Model>> open_model(const checkpoint::ModelContract& contract,
                                          const memory::Trunk& trunk);

// What one sequence of it remembers.
state::Layout state_layout(const checkpoint::ModelContract& contract);

// What Model::activation_bytes_per_row says, before there is a trunk to open the model with.
uint64_t activation_bytes_per_row(const checkpoint::ModelContract& contract);

// What its routed experts compute.
memory::ExpertFunction expert_function(const checkpoint::ModelContract& contract);

}  // namespace deltafin::model
