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

Result<io::ReaderKind> find_reader(const std::string& name, const char* source) {
  if (name == "auto") return io::ReaderKind::Auto;
  if (name == "io_uring") return io::ReaderKind::Uring;
  if (name == "pread") return io::ReaderKind::Threads;
  return fail(ErrorCode::Usage,
              fmt::format("{}: found \"{}\", expected auto, io_uring or pread", source, name));
}

// A mistake in an environment variable, with the way out.
std::unexpected<Error> blame_environment(const Error& error, const char* flag) {
  return fail(ErrorCode::Usage,
              fmt::format("{}\n  that is an environment variable: unset it, or give {} NAME, which "
                          "wins",
                          error.what, flag));
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
  line.flag("--reader", "NAME",
            fmt::format("how the disk is read: io_uring, pread or auto (default: ${}, else auto: "
                        "io_uring where it works)",
                        kReaderVariable),
            text_into(reader));
  line.flag("--direct", "WHEN",
            "reads past the page cache: auto, where file and place allow it; on, the same and drop "
            "from the cache what had to go through it; off (default: auto)",
            text_into(direct));
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
    if (!kernels) return blame_environment(kernels.error(), "--isa");
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

const char* name_of(io::DirectReads direct) {
  switch (direct) {
    case io::DirectReads::Off:
      return "off";
    case io::DirectReads::Auto:
      return "auto";
    case io::DirectReads::On:
      return "on";
  }
  return "";
}

Result<ReaderChoice> choose_reader(const MachineFlags& flags, const char* reader_variable) {
  ReaderChoice choice;
  if (flags.reader) {
    TRY(choice.kind, find_reader(*flags.reader, "--reader"));
    choice.by = ChosenBy::Flag;
  } else if (reader_variable != nullptr && *reader_variable != '\0') {
    const Result<io::ReaderKind> kind = find_reader(reader_variable, kReaderVariable);
    if (!kind) return blame_environment(kind.error(), "--reader");
    choice.kind = *kind;
    choice.by = ChosenBy::Environment;
  }
  if (!flags.direct) return choice;
  for (const io::DirectReads direct :
       {io::DirectReads::Off, io::DirectReads::Auto, io::DirectReads::On}) {
    if (*flags.direct != name_of(direct)) continue;
    choice.direct = direct;
    return choice;
  }
  return fail(ErrorCode::Usage,
              fmt::format("--direct: found \"{}\", expected auto, on or off", *flags.direct));
}

Result<io::OpenedReader> open(const ReaderChoice& choice) {
  Result<io::OpenedReader> opened = io::open_reader(choice.kind, choice.direct);
  if (opened) return opened;
  return fail(opened.error().code,
              fmt::format("{}: {}\n  auto reads with pread where that is so",
                          choice.by == ChosenBy::Environment ? kReaderVariable : "--reader",
                          opened.error().what));
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
