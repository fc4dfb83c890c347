// JSON as text for clients.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace deltafin::serve {

inline constexpr const char* kJson = "application/json";

// On one line. Never throws: what a client or a model directory gave may be no UTF-8, and such
// bytes become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);

// 0.6f as 0.6 and not as 0.60000002384: the shortest decimal that reads back as the same float.
double shortest_decimal(float value);

}  // namespace deltafin::serve
