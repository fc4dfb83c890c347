// What doctor prints, from what the machine says and what we would use of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/machine.h"
#include "cli/machine_flags.h"

namespace deltafin::cli {

struct DoctorReport {
  std::string processor;  // empty: it does not say
  std::vector<std::string> usable_isas;
  MachineChoice choice;
  ReaderChoice reader_choice;
  std::string reader;         // its name
  std::string why_not_uring;  // where that would have been the first choice
  CpuShare cpu;
  MemoryShare memory;
  HugePages huge_pages = HugePages::Unknown;
  // The control register as whatever started or was loaded into the process left it.
  bool float_was_canonical = true;
};

// Aligned lines, in blocks.
std::string to_text(const DoctorReport& report);
nlohmann::ordered_json to_json(const DoctorReport& report);

}  // namespace deltafin::cli
