// How fast the disk of a model is right now.
#pragma once

#include <optional>
#include <string>

namespace deltafin::cli {

// Bytes a second of the shards in `directory`, read for half a second; empty when none can be.
std::optional<double> measure_disk(const std::string& directory);

}  // namespace deltafin::cli
