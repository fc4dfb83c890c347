// Numbers as people read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace deltafin::cli {

// "17.5 MB": three or four digits and a decimal unit (GB = 10^9). Below 1000: "640 bytes".
std::string human_bytes(uint64_t bytes);
std::string human_bytes(double bytes);
// "1,446,123,456"
std::string with_separators(uint64_t number);
// "25.8 GB (25,830,000,000 bytes)"
std::string exact_bytes(uint64_t bytes);
// "2.8 T", "48.1 B", "7.47 M": counts of parameters.
std::string human_count(uint64_t count);
// "12 ms", "0.8 s", "12 s", "3 m 05 s", "2 h 10 m"
std::string human_duration(std::chrono::nanoseconds duration);
// So many in that time, per second; 0 of no time.
double rate(uint64_t count, std::chrono::nanoseconds time);

}  // namespace deltafin::cli
