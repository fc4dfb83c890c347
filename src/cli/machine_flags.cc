#include "cli/machine_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/limits.h"

namespace deltafin::cli {

namespace {

// Two or three times too many threads are merely slow, which a test may want. 256 on two processors
// have been seen to take a machine away from everybody, for minutes.
constexpr uint64_t kThreadsPerProcessor = 4;

// `source`: the flag or the variable that said so.
Result<const numerics::Kernels*> find_isa(const std::string& name, const char* source) {
  if (const numerics::Kernels* kernels = numerics::find_kernels(name)) return kernels;
  return fail(ErrorCode::Usage,
              fmt::format("{}: found \"{}\", expected one that this processor has: {}", source,
                          name, fmt::join(usable_isas(), ", ")));
}

}  // namespace

void MachineFlags::declare(CommandLine& line) {
  line.flag("--threads", "N", "compute threads (default: the physical cores this process may use)",
            integer_into(threads, 1, limits::kThreads));
  line.flag("--isa", "NAME",
            fmt::format("instruction set: baseline, avx2 or avx512 (default: ${}, else the best "
                        "here); the output has the same bits with each",
                        kIsaVariable),
            text_into(isa));
}

const char* name_of(ChosenBy by) {
  switch (by) {
    case ChosenBy::Default:
      return "default";
    case ChosenBy::Flag:
      return "flag";
    case ChosenBy::Environment:
      return "environment";
  }
  return "";
}

Result<MachineChoice> choose(const MachineFlags& flags, const CpuShare& cpu,
                             const char* isa_variable) {
  MachineChoice choice;
  choice.kernels = &numerics::best_kernels();
  if (flags.isa) {
    TRY(choice.kernels, find_isa(*flags.isa, "--isa"));
    choice.kernels_by = ChosenBy::Flag;
  } else if (isa_variable != nullptr && *isa_variable != '\0') {
    Result<const numerics::Kernels*> kernels = find_isa(isa_variable, kIsaVariable);
    if (!kernels)
      return fail(ErrorCode::Usage, kernels.error().what +
                                        "\n  that is an environment variable: unset it, or give "
                                        "--isa NAME, which wins");
    choice.kernels = *kernels;
    choice.kernels_by = ChosenBy::Environment;
  }
  choice.thread_count = cpu.usable_core_count();
  if (flags.threads) {
    TRY_STATUS(check_thread_count(*flags.threads, cpu.allowed_count));
    choice.thread_count = *flags.threads;
    choice.threads_by = ChosenBy::Flag;
  }
  return choice;
}

Status check_thread_count(uint64_t thread_count, uint64_t processors) {
  if (thread_count <= processors * kThreadsPerProcessor) return {};
  return fail(
      ErrorCode::Usage,
      fmt::format("--threads: found {}, expected at most {}: there {} {} here, and more threads "
                  "than that only wait for each other",
                  thread_count, processors * kThreadsPerProcessor, processors == 1 ? "is" : "are",
                  processors == 1 ? "one processor" : fmt::format("{} processors", processors)));
}

std::vector<std::string> usable_isas() {
  std::vector<std::string> names;
  for (const numerics::Kernels& kernels : numerics::kernel_variants())
    names.emplace_back(kernels.name);
  return names;
}

}  // namespace deltafin::cli
