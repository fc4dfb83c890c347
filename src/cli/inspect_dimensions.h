// The part of inspect's report that differs from family to family: kinds of layers and dimensions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/contract.h"
#include "checkpoint/inventory.h"

namespace deltafin::cli {

struct DimensionLine {
  std::string_view name;
  std::string value;
};

// "layers", "widths", one line for every kind of mixer and feed-forward, and the output head where
// it is the embedding.
std::vector<DimensionLine> dimension_lines(const checkpoint::ModelContract& contract,
                                           const checkpoint::Inventory& inventory);

// Layers by kind: "count", the mixers of the family, "dense", "moe".
nlohmann::ordered_json layer_counts_json(const checkpoint::ModelContract& contract,
                                         const checkpoint::Inventory& inventory);
nlohmann::ordered_json dimensions_json(const checkpoint::ModelContract& contract);

// As JSON has it: "kda", "moe"
const char* name_of(checkpoint::MixerKind kind);
const char* name_of(checkpoint::FfnKind kind);

}  // namespace deltafin::cli
