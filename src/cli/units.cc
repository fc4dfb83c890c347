#include "cli/units.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "base/clock.h"

namespace deltafin::cli {

namespace {

// Three digits, or four where the number starts with a 1, so that the last one is worth about 0.1
// %.
std::string significant(double value) {
  const int before_point = value < 10 ? 1 : value < 100 ? 2 : 3;
  const bool starts_with_one = value < 2 || (value >= 10 && value < 20);
  return fmt::format("{:.{}f}", value, (starts_with_one ? 4 : 3) - before_point);
}

// `value` in the first of the units, each a thousand times the one before, in which it is below
// 1000.
std::string scaled(double value, std::span<const char* const> units) {
  size_t unit = 0;
  // 999.95 would be printed as 1000.
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{} {}", significant(value), units[unit]);
}

}  // namespace

std::string human_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 999.5) return fmt::format("{:.0f} {}", bytes, bytes == 1 ? "byte" : "bytes");
  return scaled(bytes, kUnits);
}

std::string human_bytes(uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

std::string with_separators(uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (size_t end = text.size(); end > 3; end -= 3)
    text.insert(text.begin() + static_cast<ptrdiff_t>(end - 3), ',');
  return text;
}

std::string exact_bytes(uint64_t bytes) {
  if (bytes < 1000) return human_bytes(bytes);
  return fmt::format("{} ({} bytes)", human_bytes(bytes), with_separators(bytes));
}

std::string human_count(uint64_t count) {
  static constexpr const char* kUnits[] = {"", "k", "M", "B", "T"};
  if (count < 1000) return fmt::format("{}", count);
  return scaled(static_cast<double>(count), kUnits);
}

std::string human_duration(std::chrono::nanoseconds duration) {
  const double span = seconds(duration);
  if (span < 0.0995) return fmt::format("{:.0f} ms", std::max(span, 0.0) * 1000);
  if (span < 9.95) return fmt::format("{:.1f} s", span);
  const uint64_t whole = static_cast<uint64_t>(span + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} m {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} m", whole / 3600, whole % 3600 / 60);
}

double rate(uint64_t count, std::chrono::nanoseconds time) {
  return time.count() > 0 ? static_cast<double>(count) / seconds(time) : 0;
}

}  // namespace deltafin::cli
