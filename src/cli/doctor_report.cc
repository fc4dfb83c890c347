#include "cli/doctor_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/limits.h"
#include "cli/messages.h"
#include "cli/units.h"
#include "numerics/kernels.h"

namespace deltafin::cli {

using nlohmann::ordered_json;

namespace {

constexpr size_t kColumn = 14;  // where values start

const char* plural(uint64_t count, const char* one, const char* many) {
  return count == 1 ? one : many;
}

std::string why_these_kernels(ChosenBy by) {
  switch (by) {
    case ChosenBy::Default:
      return "the best of this processor";
    case ChosenBy::Flag:
      return "as --isa says";
    case ChosenBy::Environment:
      return fmt::format("as the environment variable {} says", kIsaVariable);
  }
  return "";
}

// Which of the bounds on the number of threads is the one that binds.
enum class Bound : uint8_t { Flag, Limit, Quota, Affinity, Cores, Processors };

Bound bound_of_threads(const DoctorReport& report) {
  const CpuShare& cpu = report.cpu;
  const size_t count = report.choice.thread_count;
  if (report.choice.threads_by == ChosenBy::Flag) return Bound::Flag;
  if (cpu.quota && count < cpu.core_count && count < limits::kThreads) return Bound::Quota;
  if (count < cpu.core_count) return Bound::Limit;
  if (cpu.allowed_count < cpu.online_count) return Bound::Affinity;
  return cpu.core_count < cpu.allowed_count ? Bound::Cores : Bound::Processors;
}

const char* bound_name(Bound bound) {
  switch (bound) {
    case Bound::Flag:
      return "flag";
    case Bound::Limit:
      return "limit";
    case Bound::Quota:
      return "quota";
    case Bound::Affinity:
      return "affinity";
    case Bound::Cores:
      return "cores";
    case Bound::Processors:
      return "processors";
  }
  return "";
}

std::string why_so_many_threads(Bound bound) {
  switch (bound) {
    case Bound::Flag:
      return "as --threads says";
    case Bound::Limit:
      return "the most that there can be";
    case Bound::Quota:
      return "what the quota of processor time feeds";
    case Bound::Affinity:
      return "one for each core in the affinity mask (taskset, cpuset)";
    case Bound::Cores:
      return "one for each core; a second on its SMT sibling would not be faster";
    case Bound::Processors:
      return "one for each core";
  }
  return "";
}

class Lines {
 public:
  void line(const char* name, const std::string& value) {
    text_ += fmt::format("{:<{}}{}\n", name, kColumn, value);
  }
  // About the line above.
  void more(const std::string& value) { line("", value); }
  void block() { text_ += "\n"; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_processor(Lines& lines, const DoctorReport& report) {
  lines.line("processor", report.processor.empty() ? "does not say" : report.processor);
  lines.line("kernels", fmt::format("{}: {}", report.choice.kernels->name,
                                    why_these_kernels(report.choice.kernels_by)));
  lines.more(fmt::format("usable here: {}", fmt::join(report.usable_isas, ", ")));
  lines.more(fmt::format("the same bits with each: {}", numerics::kArithmetic));
}

void add_threads(Lines& lines, const DoctorReport& report) {
  const CpuShare& cpu = report.cpu;
  const size_t count = report.choice.thread_count, usable = cpu.usable_core_count();
  lines.line("threads",
             fmt::format("{}: {}", count, why_so_many_threads(bound_of_threads(report))));
  if (count > usable)
    lines.more(fmt::format("more than the {} worth having: they will wait for each other", usable));
  lines.line("processors", fmt::format("{} of {} in the affinity mask: {} {}", cpu.allowed_count,
                                       cpu.online_count, cpu.core_count,
                                       plural(cpu.core_count, "physical core", "physical cores")));
  lines.line("quota", cpu.quota ? fmt::format("{:.4g} processors, by {}", cpu.quota->processors,
                                              cpu.quota->file)
                                : "none");
}

std::string bytes_or_unknown(std::optional<uint64_t> bytes) {
  return bytes ? human_bytes(*bytes) : "unknown";
}

void add_memory(Lines& lines, const DoctorReport& report) {
  const MemoryShare& memory = report.memory;
  lines.line("memory", fmt::format("{} to use", bytes_or_unknown(memory.usable_bytes())));
  lines.line("machine",
             fmt::format("{}, of which {} available", bytes_or_unknown(memory.total_bytes),
                         bytes_or_unknown(memory.available_bytes)));
  lines.line("limit",
             memory.limit
                 ? fmt::format("{}, of which {} in use, by {}", human_bytes(memory.limit->bytes),
                               human_bytes(memory.limit->used_bytes), memory.limit->file)
                 : "none");
}

std::string why_this_reader(const DoctorReport& report) {
  if (!report.why_not_uring.empty()) return report.why_not_uring;
  if (report.reader_choice.kind == io::ReaderKind::Auto) return "works here";
  return report.reader_choice.by == ChosenBy::Environment
             ? fmt::format("as the environment variable {} says", kReaderVariable)
             : "as --reader says";
}

const char* meaning_of(io::DirectReads direct) {
  switch (direct) {
    case io::DirectReads::Off:
      return "off: everything goes through the page cache";
    case io::DirectReads::Auto:
      return "auto: where each file allows them; run --stats counts them";
    case io::DirectReads::On:
      return "on: where each file allows them, and the page cache is cleared of the rest";
  }
  return "";
}

void add_reader(Lines& lines, const DoctorReport& report) {
  lines.line("reader", fmt::format("{}: {}", report.reader, why_this_reader(report)));
  lines.line("direct reads", meaning_of(report.reader_choice.direct));
}

std::string meaning_of(HugePages state) {
  switch (state) {
    case HugePages::Always:
      return "always: weights get them";
    case HugePages::Advised:
      return "madvise: weights ask for them and get them";
    case HugePages::Never:
      return "never: weights lie in small pages, and reading them is slower";
    case HugePages::Unknown:
      break;
  }
  return "unknown: this kernel does not say";
}

// Empty where there is nothing to be done.
std::string advice_for(HugePages state) {
  if (state != HugePages::Never) return "";
  return "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
}

ordered_json or_null(std::optional<uint64_t> number) {
  return number ? ordered_json(*number) : ordered_json();
}

ordered_json threads_json(const DoctorReport& report) {
  const CpuShare& cpu = report.cpu;
  ordered_json json = {{"chosen", report.choice.thread_count},
                       {"bound", bound_name(bound_of_threads(report))},
                       {"usable_cores", cpu.usable_core_count()},
                       {"processors_online", cpu.online_count},
                       {"processors_allowed", cpu.allowed_count},
                       {"physical_cores", cpu.core_count},
                       {"quota", nullptr}};
  if (cpu.quota) json["quota"] = {{"processors", cpu.quota->processors}, {"file", cpu.quota->file}};
  return json;
}

ordered_json memory_json(const MemoryShare& memory) {
  ordered_json json = {{"usable_bytes", or_null(memory.usable_bytes())},
                       {"total_bytes", or_null(memory.total_bytes)},
                       {"available_bytes", or_null(memory.available_bytes)},
                       {"limit", nullptr}};
  if (memory.limit)
    json["limit"] = {{"bytes", memory.limit->bytes},
                     {"used_bytes", memory.limit->used_bytes},
                     {"file", memory.limit->file}};
  return json;
}

}  // namespace

std::string to_text(const DoctorReport& report) {
  Lines lines;
  add_processor(lines, report);
  lines.block();
  add_threads(lines, report);
  lines.block();
  add_memory(lines, report);
  lines.block();
  add_reader(lines, report);
  lines.block();
  lines.line("huge pages", meaning_of(report.huge_pages));
  const std::string advice = advice_for(report.huge_pages);
  if (!advice.empty()) lines.more("try: " + advice);
  lines.line("floats", report.float_was_canonical
                           ? "round to nearest, subnormals kept"
                           : "not as they should be when the program started, and set right: round "
                             "to nearest, subnormals kept");
  return lines.take();
}

ordered_json to_json(const DoctorReport& report) {
  const std::string advice = advice_for(report.huge_pages);
  return {
      {"schema", "deltafin.doctor.v1"},
      {"version", version()},
      {"processor", report.processor.empty() ? ordered_json() : ordered_json(report.processor)},
      {"isa",
       {{"chosen", report.choice.kernels->name},
        {"by", name_of(report.choice.kernels_by)},
        {"usable", report.usable_isas}}},
      {"arithmetic", numerics::kArithmetic},
      {"threads", threads_json(report)},
      {"memory", memory_json(report.memory)},
      {"reader",
       {{"chosen", report.reader},
        {"by", name_of(report.reader_choice.by)},
        {"why_not_io_uring",
         report.why_not_uring.empty() ? ordered_json() : ordered_json(report.why_not_uring)},
        {"direct", name_of(report.reader_choice.direct)}}},
      {"huge_pages",
       {{"state", name_of(report.huge_pages)},
        {"advice", advice.empty() ? ordered_json() : ordered_json(advice)}}},
      {"float_control", {{"canonical_at_start", report.float_was_canonical}}},
  };
}

}  // namespace deltafin::cli
