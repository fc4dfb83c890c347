// Python's spelling of JSON numbers.
#pragma once

#include <string>
#include <string_view>

namespace deltafin::text {

// What repr(float(number)) gives for a JSON number with a fraction or an exponent: the shortest
// digits that read back the same, 1e+16 from there on, 1e-05 below 1e-4, and always a point or an
// exponent. Beyond double: "Infinity" or "-Infinity".
std::string python_float(const std::string& number);

// What str(int(number)) gives for a JSON number without either: only -0 changes.
std::string python_integer(std::string_view number);

}  // namespace deltafin::text
