// Signs that memory is short: what a program that holds gigabytes has to look at while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace deltafin {

// Totals since some time before.
struct MemoryPressure {
  uint64_t major_faults = 0;  // of this process: pages that had to come from disk
  // Nobody could work because of memory (PSI, "full"); 0 where the kernel does not say.
  std::chrono::nanoseconds stalled{0};
};

// Where to read it, as a seam for tests.
class PressureGauge {
 public:
  virtual ~PressureGauge() = default;
  virtual MemoryPressure read() const = 0;
};

// Of this process and this machine.
class SystemPressureGauge final : public PressureGauge {
 public:
  MemoryPressure read() const override;
};

// The total of the "full" line of a file like /proc/pressure/memory; empty when it has none.
std::optional<std::chrono::nanoseconds> parse_full_stall(const std::string& text);

// Looks at the gauge now and then.
class PressureWatch {
 public:
  // Between two looks: less says nothing.
  static constexpr std::chrono::nanoseconds kInterval = std::chrono::seconds(1);
  // What is too much. A process whose own code and heap stay in memory has next to no major
  // faults: its weights are read past the page cache.
  static constexpr double kFaultsPerSecond = 100;
  static constexpr double kStalledShare = 0.1;

  // `gauge` must outlive the watch; null: memory is never short.
  explicit PressureWatch(const PressureGauge* gauge) : gauge_(gauge) {}

  // Whether memory was short since the look before. Looks only when it is time to.
  bool is_short(std::chrono::nanoseconds now);

 private:
  const PressureGauge* gauge_;
  std::optional<std::chrono::nanoseconds> last_time_;
  MemoryPressure last_;
};

}  // namespace deltafin
