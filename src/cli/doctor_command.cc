#include "cli/doctor_command.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/float_control.h"
#include "base/machine.h"
#include "cli/command_line.h"
#include "cli/doctor_report.h"
#include "cli/events.h"
#include "cli/machine_flags.h"
#include "cli/messages.h"

namespace deltafin::cli {

namespace {

struct DoctorFlags {
  MachineFlags machine;
  bool json = false;

  void declare(CommandLine& line);
};

void DoctorFlags::declare(CommandLine& line) {
  line.toggle("--json", "print one JSON object", json);
  line.group("machine, as for run");
  machine.declare(line);
  line.example("deltafin doctor", "which kernels, how many threads, how much memory, and why");
  line.example("deltafin doctor --json | jq .threads.chosen", "how many threads run would start");
}

Result<DoctorReport> examine(const MachineFlags& flags) {
  const Machine machine;
  DoctorReport report;
  report.float_was_canonical = float_control_is_canonical();
  report.processor = machine.processor_name();
  report.usable_isas = usable_isas();
  report.cpu = machine.cpu();
  report.memory = machine.memory();
  report.huge_pages = machine.huge_pages();
  TRY(report.choice, choose(flags, report.cpu, std::getenv(kIsaVariable)));
  TRY(report.reader_choice, choose_reader(flags, std::getenv(kReaderVariable)));
  TRY(const io::OpenedReader reader, open(report.reader_choice));
  report.reader = reader.reader->name();
  report.why_not_uring = reader.why_not_uring;
  return report;
}

}  // namespace

Result<int> doctor_command(const std::vector<std::string>& arguments, CancelToken& /*cancel*/) {
  DoctorFlags flags;
  CommandLine line = {
      "doctor [options]",
      "What this machine has and what deltafin would use of it: instruction sets, threads and "
      "memory, with the limits that containers, quotas and affinity masks set, and which of them "
      "binds."};
  flags.declare(line);
  TRY(const CommandLine::Parsed parsed, line.parse(arguments));
  if (parsed == CommandLine::Parsed::Help) return print(line.help());
  TRY(const DoctorReport report, examine(flags.machine));
  return print(flags.json ? to_document(to_json(report)) : to_text(report));
}

}  // namespace deltafin::cli
