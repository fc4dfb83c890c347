#include "base/memory_pressure.h"

#include <sys/resource.h>

#include <charconv>
#include <fstream>
#include <sstream>

namespace deltafin {

MemoryPressure SystemPressureGauge::read() const {
  MemoryPressure pressure;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    pressure.major_faults = static_cast<uint64_t>(usage.ru_majflt);
  std::ostringstream text;
  if (std::ifstream file("/proc/pressure/memory"); file) text << file.rdbuf();
  pressure.stalled = parse_full_stall(text.str()).value_or(std::chrono::nanoseconds(0));
  return pressure;
}

std::optional<std::chrono::nanoseconds> parse_full_stall(const std::string& text) {
  const size_t line = text.starts_with("full ") ? 0 : text.find("\nfull ");
  if (line == std::string::npos) return std::nullopt;
  constexpr std::string_view kTotal = " total=";
  const size_t found = text.find(kTotal, line);
  if (found == std::string::npos) return std::nullopt;
  uint64_t microseconds = 0;
  const char* const begin = text.data() + found + kTotal.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), microseconds);
  if (error != std::errc() || end == begin) return std::nullopt;
  return std::chrono::microseconds(microseconds);
}

bool PressureWatch::is_short(std::chrono::nanoseconds now) {
  if (gauge_ == nullptr || (last_time_ && now - *last_time_ < kInterval)) return false;
  const MemoryPressure pressure = gauge_->read();
  bool is_short = false;
  if (last_time_) {
    const double seconds = std::chrono::duration<double>(now - *last_time_).count();
    const double faults = static_cast<double>(pressure.major_faults - last_.major_faults);
    const double stalled = std::chrono::duration<double>(pressure.stalled - last_.stalled).count();
    is_short = faults > kFaultsPerSecond * seconds || stalled > kStalledShare * seconds;
  }
  last_time_ = now;
  last_ = pressure;
  return is_short;
}

}  // namespace deltafin
