// How long the routes of a server take that generate nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace deltafin::bench {

inline constexpr size_t kClients = 8;  // threads that ask

using Latencies = std::map<std::string, std::vector<double>>;  // milliseconds, by path

// Asks all of them over and over, on connections that stay open, until `ends`. What was not
// answered with 200 is under "failed".
Latencies ask_routes(uint16_t port, size_t connections, const std::function<bool()>& ends);

// Of what is sorted; 0 of nothing.
double quantile(const std::vector<double>& sorted, double share);

}  // namespace deltafin::bench
