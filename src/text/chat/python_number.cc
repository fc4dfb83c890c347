#include "text/chat/python_number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace deltafin::text {

namespace {

// [begin, end) of float values with this decimal exponent are written without one.
constexpr int kFixedBegin = -4, kFixedEnd = 16;

// "0.001", "120.0": `digits` with the point behind the first exponent + 1 of them.
std::string fixed(std::string digits, int exponent) {
  if (exponent < 0) return "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return digits + std::string(whole - digits.size(), '0') + ".0";
  digits.insert(whole, ".");
  return digits;
}

std::string scientific(std::string digits, int exponent) {
  if (digits.size() > 1) digits.insert(1, ".");
  return fmt::format("{}e{}{:02}", digits, exponent < 0 ? '-' : '+', std::abs(exponent));
}

}  // namespace

std::string python_float(const std::string& number) {
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  // from_chars does not say on which side a number is out of range. strtod minds the locale, but
  // only when it reads a point, and behind one no digit can bring a number back into range.
  if (error == std::errc::result_out_of_range) value = std::strtod(number.c_str(), nullptr);
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + "Infinity";
  if (value == 0) return sign + "0.0";

  char buffer[40];
  const std::to_chars_result written = std::to_chars(
      buffer, buffer + sizeof(buffer), std::abs(value), std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<size_t>(written.ptr - buffer));
  const size_t e = shortest.find('e');
  const int exponent = std::atoi(std::string(shortest.substr(e + 1)).c_str());
  std::string digits(1, shortest[0]);
  if (e > 2) digits += shortest.substr(2, e - 2);
  const bool is_fixed = exponent >= kFixedBegin && exponent < kFixedEnd;
  return sign + (is_fixed ? fixed(digits, exponent) : scientific(digits, exponent));
}

std::string python_integer(std::string_view number) {
  return number == "-0" ? "0" : std::string(number);
}

}  // namespace deltafin::text
