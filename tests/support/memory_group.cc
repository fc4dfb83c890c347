#include "support/memory_group.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/control_groups.h"

namespace deltafin::test {

namespace {

// The number behind `name` and a blank, or the first of the text when there is no name.
uint64_t number_in(const std::string& path, const std::string& name) {
  const std::string text = read_system_file(path).value_or("");
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    uint64_t number = 0;
    const std::string_view digits = line.substr(name.size());
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (result.ec == std::errc()) return number;
  }
  return 0;
}

std::unexpected<Error> impossible(const std::string& what) {
  return fail(ErrorCode::Io, "no memory group can be made here: " + what);
}

}  // namespace

Result<MemoryGroup> MemoryGroup::make(uint64_t limit_bytes) {
  const std::vector<ControlGroup> groups = control_groups("", "memory");
  const auto ours = std::ranges::find(groups, ControlGroup::Version::One, &ControlGroup::version);
  if (ours == groups.end()) return impossible("there is no memory controller of cgroup v1");
  static std::atomic<int> count = 0;
  const std::string folder = fmt::format("{}/deltafin-{}-{}", ours->folder, ::getpid(), ++count);
  if (::mkdir(folder.c_str(), 0755) != 0)
    return impossible(fmt::format("{}: {}", folder, std::strerror(errno)));
  MemoryGroup group(folder, limit_bytes);
  std::ofstream limit(folder + "/memory.limit_in_bytes");
  limit << limit_bytes << std::flush;
  if (!limit) return impossible(folder + ": its limit cannot be set");
  return group;
}

MemoryGroup::MemoryGroup(MemoryGroup&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), limit_bytes_(other.limit_bytes_) {}

MemoryGroup::~MemoryGroup() {
  if (!folder_.empty()) ::rmdir(folder_.c_str());
}

uint64_t MemoryGroup::kill_count() const {
  return number_in(folder_ + "/memory.oom_control", "oom_kill ");
}

uint64_t MemoryGroup::peak_bytes() const {
  return number_in(folder_ + "/memory.max_usage_in_bytes", "");
}

uint64_t MemoryGroup::held_bytes() const {
  const uint64_t charged = number_in(folder_ + "/memory.usage_in_bytes", "");
  return charged - std::min(charged, number_in(folder_ + "/memory.stat", "cache "));
}

}  // namespace deltafin::test
