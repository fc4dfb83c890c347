// What inspect prints, from a model's contract and what a survey found of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/contract.h"
#include "checkpoint/survey.h"

namespace deltafin::cli {

struct InspectReport {
  std::string place;                                    // the directory or the config file
  const checkpoint::ModelContract* contract = nullptr;  // null: config.json is missing or refused
  const checkpoint::Survey* survey = nullptr;           // null: only the config is known
};

// Layers that lack the same number of tensors, in a row: "layers 5-92: 0 of 5,387 tensors". One
// line each; none for complete layers.
std::vector<std::string> incomplete_layers(const std::vector<checkpoint::Completeness>& layers);

// Aligned lines; there must be a contract.
std::string to_text(const InspectReport& report);
nlohmann::ordered_json to_json(const InspectReport& report);

}  // namespace deltafin::cli
