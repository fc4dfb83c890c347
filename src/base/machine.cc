#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <set>

#include "base/control_groups.h"
#include "base/limits.h"

namespace deltafin {

namespace {

using Version = ControlGroup::Version;

constexpr std::string_view kBlanks = " \t\r\n";

// No kernel is built for more processors than 8192.
constexpr size_t kProcessorsMost = 65536;

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The number that `text` is as a whole.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  const std::string_view digits = trimmed(text);
  Number number{};
  const std::from_chars_result result =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size()) return std::nullopt;
  return number;
}

template <class Number>
std::optional<Number> number_in_file(const std::string& path) {
  const std::optional<std::string> text = read_system_file(path);
  return text ? number_in<Number>(*text) : std::nullopt;
}

// What stands behind `name` and a separator in the first line that begins with both.
std::optional<std::string_view> value_of(std::string_view text, std::string_view name,
                                         char separator) {
  for (const std::string_view line : split(text, '\n')) {
    const size_t at = line.find(separator);
    if (at != std::string_view::npos && trimmed(line.substr(0, at)) == name)
      return trimmed(line.substr(at + 1));
  }
  return std::nullopt;
}

// ------------------------------------------------------------------------------------ processors
// ---

// The numbers of the processors that the calling thread may run on.
std::vector<size_t> affinity_mask() {
  std::vector<size_t> allowed;
  // The system refuses a set with fewer places than the machine may have processors.
  for (size_t places = CPU_SETSIZE; places <= kProcessorsMost; places *= 2) {
    const auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
    const std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(places), free_set);
    const size_t bytes = CPU_ALLOC_SIZE(places);
    if (set == nullptr || ::sched_getaffinity(0, bytes, set.get()) != 0) continue;
    for (size_t number = 0; number < places; ++number)
      if (CPU_ISSET_S(number, bytes, set.get())) allowed.push_back(number);
    return allowed;
  }
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  for (long number = 0; number < online; ++number) allowed.push_back(static_cast<size_t>(number));
  return allowed;
}

// One number for all SMT siblings: the lowest among them. The efficient cores of a hybrid processor
// have no siblings and count as cores: tasks are handed out one by one, so a slow core takes fewer.
// Without a list that makes sense, each processor counts.
size_t core_of(const std::string& root, size_t processor) {
  const std::string folder =
      root + "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/";
  for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {  // since 5.3; before
    const std::vector<size_t> siblings =
        parse_processor_list(read_system_file(folder + name).value_or(""));
    if (std::ranges::find(siblings, processor) != siblings.end())
      return *std::ranges::min_element(siblings);
  }
  return processor;
}

// Version 2: "150000 100000", or "max 100000".
std::optional<double> quota_two(const std::string& folder) {
  const std::string text = read_system_file(folder + "/cpu.max").value_or("");
  const std::vector<std::string_view> words = split(trimmed(text), ' ');
  if (words.size() != 2) return std::nullopt;
  const std::optional<double> quota = number_in<double>(words[0]);
  const std::optional<double> period = number_in<double>(words[1]);
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

// Version 1: -1 without a limit.
std::optional<double> quota_one(const std::string& folder) {
  const std::optional<double> quota = number_in_file<double>(folder + "/cpu.cfs_quota_us");
  const std::optional<double> period = number_in_file<double>(folder + "/cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

std::optional<CpuQuota> tightest_quota(const std::string& root) {
  std::optional<CpuQuota> tightest;
  for (const ControlGroup& group : control_groups(root, "cpu")) {
    const bool is_two = group.version == Version::Two;
    const std::optional<double> quota =
        is_two ? quota_two(root + group.folder) : quota_one(root + group.folder);
    if (!quota || !std::isfinite(*quota) || *quota <= 0) continue;
    if (tightest && tightest->processors <= *quota) continue;
    tightest = {.processors = *quota,
                .file = group.folder + (is_two ? "/cpu.max" : "/cpu.cfs_quota_us")};
  }
  return tightest;
}

// ---------------------------------------------------------------------------------------- memory
// ---

std::optional<uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view name) {
  std::string_view value = value_of(meminfo, name, ':').value_or("");
  if (!value.ends_with(" kB")) return std::nullopt;
  value.remove_suffix(3);
  const std::optional<uint64_t> kib = number_in<uint64_t>(value);
  if (!kib || *kib > UINT64_MAX / 1024) return std::nullopt;
  return *kib * 1024;
}

// What a group uses, without the pages of files: the kernel drops those before it refuses memory,
// and a run before us may have filled the group with the pages of a checkpoint.
uint64_t used_bytes(const std::string& folder, Version version) {
  const bool is_two = version == Version::Two;
  const uint64_t charged =
      number_in_file<uint64_t>(folder + (is_two ? "/memory.current" : "/memory.usage_in_bytes"))
          .value_or(0);
  const std::string statistics = read_system_file(folder + "/memory.stat").value_or("");
  const std::string prefix = is_two ? "" : "total_";  // version 1: with the groups below
  uint64_t droppable = 0;
  for (const char* name : {"inactive_file", "active_file"})
    droppable +=
        number_in<uint64_t>(value_of(statistics, prefix + name, ' ').value_or("")).value_or(0);
  return charged - std::min(charged, droppable);
}

std::optional<MemoryLimit> tightest_memory(const std::string& root,
                                           std::optional<uint64_t> total_bytes) {
  std::optional<MemoryLimit> tightest;
  for (const ControlGroup& group : control_groups(root, "memory")) {
    const bool is_two = group.version == Version::Two;
    // Above memory.high a group is slowed down until it is as good as stopped.
    const std::vector<std::string> names =
        is_two ? std::vector<std::string>{"memory.max", "memory.high"}
               : std::vector<std::string>{"memory.limit_in_bytes"};
    for (const std::string& name : names) {
      const std::string file = group.folder + "/" + name;
      const std::optional<uint64_t> bytes = number_in_file<uint64_t>(root + file);
      // Version 1 writes a number near 2^63 where there is no limit.
      if (!bytes || *bytes >= total_bytes.value_or(UINT64_MAX / 2)) continue;
      const MemoryLimit limit = {.bytes = *bytes,
                                 .used_bytes = used_bytes(root + group.folder, group.version),
                                 .file = file};
      if (!tightest || limit.left_bytes() < tightest->left_bytes()) tightest = limit;
    }
  }
  return tightest;
}

}  // namespace

size_t CpuShare::usable_core_count() const {
  const double fed = quota ? std::floor(quota->processors) : INFINITY;
  const size_t count =
      fed < static_cast<double>(core_count) ? static_cast<size_t>(fed) : core_count;
  return std::clamp<size_t>(count, 1, limits::kThreads);
}

std::optional<uint64_t> MemoryShare::usable_bytes() const {
  if (!limit) return available_bytes;
  return std::min(limit->left_bytes(), available_bytes.value_or(UINT64_MAX));
}

const char* name_of(HugePages state) {
  switch (state) {
    case HugePages::Always:
      return "always";
    case HugePages::Advised:
      return "madvise";
    case HugePages::Never:
      return "never";
    case HugePages::Unknown:
      break;
  }
  return "unknown";
}

Machine::Machine() : Machine("", affinity_mask()) {}

Machine::Machine(std::string root, std::vector<size_t> allowed)
    : root_(std::move(root)), allowed_(std::move(allowed)) {}

CpuShare Machine::cpu() const {
  CpuShare share;
  share.allowed_count = std::max<size_t>(allowed_.size(), 1);
  const std::vector<size_t> online =
      parse_processor_list(read_system_file(root_ + "/sys/devices/system/cpu/online").value_or(""));
  share.online_count = std::max(online.size(), share.allowed_count);
  std::set<size_t> cores;
  for (const size_t processor : allowed_) cores.insert(core_of(root_, processor));
  share.core_count = std::max<size_t>(cores.size(), 1);
  share.quota = tightest_quota(root_);
  return share;
}

MemoryShare Machine::memory() const {
  const std::string meminfo = read_system_file(root_ + "/proc/meminfo").value_or("");
  MemoryShare share;
  share.total_bytes = meminfo_bytes(meminfo, "MemTotal");
  share.available_bytes = meminfo_bytes(meminfo, "MemAvailable");
  share.limit = tightest_memory(root_, share.total_bytes);
  return share;
}

// Not getrusage: its number is that of the parent where that was larger before exec.
std::optional<uint64_t> Machine::resident_bytes() const {
  return meminfo_bytes(read_system_file(root_ + "/proc/self/status").value_or(""), "VmRSS");
}

std::optional<uint64_t> Machine::peak_resident_bytes() const {
  return meminfo_bytes(read_system_file(root_ + "/proc/self/status").value_or(""), "VmHWM");
}

HugePages Machine::huge_pages() const {
  const std::string text =
      read_system_file(root_ + "/sys/kernel/mm/transparent_hugepage/enabled").value_or("");
  for (const HugePages state : {HugePages::Always, HugePages::Advised, HugePages::Never})
    if (text.find("[" + std::string(name_of(state)) + "]") != std::string::npos) return state;
  return HugePages::Unknown;
}

std::string Machine::processor_name() const {
  const std::string text = read_system_file(root_ + "/proc/cpuinfo").value_or("");
  return std::string(value_of(text, "model name", ':').value_or(""));
}

size_t usable_core_count() { return Machine().cpu().usable_core_count(); }

std::vector<size_t> parse_processor_list(std::string_view text) {
  std::vector<size_t> processors;
  for (const std::string_view range : split(trimmed(text), ',')) {
    const size_t dash = std::min(range.find('-'), range.size());
    const std::optional<size_t> first = number_in<size_t>(range.substr(0, dash));
    const std::optional<size_t> last =
        dash == range.size() ? first : number_in<size_t>(range.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kProcessorsMost) return {};
    for (size_t number = *first; number <= *last; ++number) processors.push_back(number);
  }
  return processors;
}

}  // namespace deltafin
