// Which control groups (cgroups) limit this process, of either version of the kernel's interface.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deltafin {

struct ControlGroup {
  enum class Version : unsigned char { One, Two };
  std::string folder;  // where its files lie, without the root
  Version version;
};

// The groups that limit `controller` ("cpu", "memory"), our own first and then those above it: each
// of them binds us, and the tightest may be any of them. Both versions may be in use at once. Empty
// where there are none, or /proc does not tell.
//
// `root` is put in front of every path: empty for the machine itself, a folder in tests.
//
// A container often sees only a part of the tree: mounted from its own group on, or with a path
// that leads outside. What can be seen is what is returned.
std::vector<ControlGroup> control_groups(const std::string& root, std::string_view controller);

// The whole of a small file of /proc or /sys; empty when it cannot be read.
std::optional<std::string> read_system_file(const std::string& path);

// The parts of `text` between separators; empty parts are left out.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace deltafin
