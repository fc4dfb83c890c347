#include "machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace deltafin::bench {

namespace {

// Of this process, or of its children that have ended.
double processor_seconds(__rusage_who who) {
  rusage usage{};
  getrusage(who, &usage);
  return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

}  // namespace

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (const size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown processor";
}

std::string machine_slug(const std::string& processor, size_t core_count) {
  std::string slug;
  for (const char c : processor + " " + std::to_string(core_count) + " cores") {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
    if (upper || plain) {
      slug += upper ? char(c - 'A' + 'a') : c;
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  return slug;
}

double load_average() {
  double average = -1;
  std::ifstream("/proc/loadavg") >> average;
  return average;
}

double Others::look() {
  // user nice system idle iowait irq softirq steal; what guests use is in user already.
  std::ifstream stat("/proc/stat");
  std::string word;
  double busy = 0, total = 0, ticks = 0;
  stat >> word;
  for (int field = 0; field < 8 && stat >> ticks; ++field) {
    const bool idle = field == 3 || field == 4;
    total += ticks;
    if (!idle) busy += ticks;
  }
  const double tick_seconds = 1.0 / double(sysconf(_SC_CLK_TCK));
  busy *= tick_seconds;
  total *= tick_seconds;
  const double own = processor_seconds(RUSAGE_SELF) + processor_seconds(RUSAGE_CHILDREN);

  const double elapsed = total - total_, others = (busy - busy_) - (own - own_);
  busy_ = busy;
  total_ = total;
  own_ = own;
  return elapsed > 0 ? std::clamp(others / elapsed, 0.0, 1.0) : 0;
}

}  // namespace deltafin::bench
