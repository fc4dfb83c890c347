#include "base/control_groups.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace deltafin {

namespace {

using Version = ControlGroup::Version;

bool contains(const std::vector<std::string_view>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// The path of our group in the hierarchy that `controller` belongs to, from lines such as
// "4:cpu,cpuacct:/user.slice" (version 1) and "0::/user.slice" (version 2). Empty: in none.
std::string own_group(std::string_view cgroup_file, Version version, std::string_view controller) {
  for (const std::string_view line : split(cgroup_file, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', std::min(first, line.size() - 1) + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool is_ours = version == Version::Two ? controllers.empty()
                                                 : contains(split(controllers, ','), controller);
    if (is_ours) return std::string(line.substr(second + 1));
  }
  return "";
}

// "\040" in a path of mountinfo is a blank.
std::string unescaped(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view code = text.substr(i, 4);
    if (code.size() == 4 && code[0] == '\\' && std::ranges::all_of(code.substr(1), is_octal)) {
      result += static_cast<char>((code[1] - '0') * 64 + (code[2] - '0') * 8 + (code[3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// The path of `group` below a mount that shows the tree from `mount_root` on; the top of the mount
// when the group lies outside.
std::string path_below(const std::string& group, const std::string& mount_root) {
  const bool leads_outside = contains(split(group, '/'), "..");
  if (leads_outside) return "";
  if (mount_root == "/") return group == "/" ? "" : group;
  if (group.starts_with(mount_root + "/")) return group.substr(mount_root.size());
  return "";
}

void add_groups(std::vector<ControlGroup>& groups, const std::string& mount_point, std::string path,
                Version version) {
  for (;;) {
    groups.push_back({.folder = mount_point + path, .version = version});
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::optional<std::string> read_system_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return std::nullopt;
  return text;
}

std::vector<ControlGroup> control_groups(const std::string& root, std::string_view controller) {
  const std::string own = read_system_file(root + "/proc/self/cgroup").value_or("");
  const std::string mounts = read_system_file(root + "/proc/self/mountinfo").value_or("");
  std::vector<ControlGroup> groups;
  for (const std::string_view line : split(mounts, '\n')) {
    // id, parent, device, root, mount point, options, any number of tags, "-", type, source, more
    const std::vector<std::string_view> fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    const Version version = dash[1] == "cgroup2" ? Version::Two : Version::One;
    if (version == Version::One &&
        (dash[1] != "cgroup" || !contains(split(dash[3], ','), controller)))
      continue;
    const std::string group = own_group(own, version, controller);
    if (group.empty()) continue;
    add_groups(groups, unescaped(fields[4]), path_below(group, unescaped(fields[3])), version);
  }
  return groups;
}

}  // namespace deltafin
