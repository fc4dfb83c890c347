// Which instruction set, how many threads and which reader: what flags, environment and machine say
// together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/machine.h"
#include "base/result.h"
#include "cli/command_line.h"
#include "io/reader.h"
#include "numerics/kernels.h"

namespace deltafin::cli {

// Says which instruction set where --isa does not. Nothing in it is the same as not there.
inline constexpr const char* kIsaVariable = "DELTAFIN_ISA";
// The same for --reader.
inline constexpr const char* kReaderVariable = "DELTAFIN_READER";

struct MachineFlags {
  std::optional<uint64_t> threads;
  std::optional<std::string> isa, reader, direct;

  // The flags must outlive the command line's parse().
  void declare(CommandLine& line);
};

enum class ChosenBy : uint8_t { Default, Flag, Environment };

// "default", "flag", "environment"
const char* name_of(ChosenBy by);

struct MachineChoice {
  const numerics::Kernels* kernels = nullptr;  // never null once chosen
  ChosenBy kernels_by = ChosenBy::Default;
  size_t thread_count = 1;
  ChosenBy threads_by = ChosenBy::Default;
};

// `isa_variable`: the value of kIsaVariable, null where there is none. Errors: Usage, for an
// instruction set that is not here, or too many threads.
Result<MachineChoice> choose(const MachineFlags& flags, const CpuShare& cpu,
                             const char* isa_variable);

// How the disk is read.
struct ReaderChoice {
  io::ReaderKind kind = io::ReaderKind::Auto;
  ChosenBy by = ChosenBy::Default;
  io::DirectReads direct = io::DirectReads::Auto;
};

// "auto", "on", "off"
const char* name_of(io::DirectReads direct);

// `reader_variable`: the value of kReaderVariable, null where there is none. Errors: Usage, for
// what is none of the names.
Result<ReaderChoice> choose_reader(const MachineFlags& flags, const char* reader_variable);

// Errors: Io, when io_uring was asked for by name and does not work here.
Result<io::OpenedReader> open(const ReaderChoice& choice);

// Errors: Usage, when so many threads would fight for so few processors.
Status check_thread_count(uint64_t thread_count, uint64_t processors);

// The names of the variants that this processor can run, the best last.
std::vector<std::string> usable_isas();

}  // namespace deltafin::cli
