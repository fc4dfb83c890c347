// What a model takes in memory when this engine runs it: memory's sizes, and those that only its
// layers and its state know.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/contract.h"
#include "memory/model_sizes.h"

namespace deltafin::engine {

// From config.json alone, or from the headers of the shards (memory/model_sizes.h).
memory::ModelSizes footprint_of(const checkpoint::ModelContract& contract);
memory::ModelSizes footprint_of(const checkpoint::Checkpoint& checkpoint);

}  // namespace deltafin::engine
