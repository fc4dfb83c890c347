// Strict reading of small JSON files (config.json and its like) into a tree.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace deltafin::checkpoint {

// One JSON object, with limits: size (limits::kConfigBytes) and depth (limits::kJsonDepth). A key
// given twice is refused: readers of JSON disagree about which one counts, and a config must mean
// one thing. Never throws. Errors: BadModel; the caller puts the file's name in front.
Result<nlohmann::json> parse_json_object(std::string_view text);

}  // namespace deltafin::checkpoint
