// Which machine a benchmark ran on, and how much of it others used meanwhile.
#pragma once

#include <cstddef>
#include <string>

namespace deltafin::bench {

// The model name of the processor, "unknown processor" where the system does not tell.
std::string processor();

// "intel-r-xeon-r-2-cores": a file name for the results of machines like this one.
std::string machine_slug(const std::string& processor, size_t core_count);

// The load average of the last minute, -1 where the system does not tell. Counts our own threads.
double load_average();

// The share of this machine's processor time that went to others since the last look. Programs that
// we started and that have ended are no others.
class Others {
 public:
  Others() { look(); }
  double look();  // in [0, 1]; 0 where the system does not tell

 private:
  double busy_ = 0, total_ = 0, own_ = 0;  // seconds, so far
};

}  // namespace deltafin::bench
