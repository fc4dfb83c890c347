#include "record.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/machine.h"
#include "machine.h"

namespace deltafin::bench {

std::string take_flag(int& count, char** arguments, std::string_view name) {
  std::string value;
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument.starts_with(name)) {
      value = argument.substr(name.size());
    } else {
      arguments[kept++] = arguments[i];
    }
  }
  count = kept;
  return value;
}

std::optional<Recording> Recording::open(int& count, char** arguments) {
  Recording recording;
  const std::string folder = take_flag(count, arguments, "--record=");
  const std::string commit = take_flag(count, arguments, "--commit=");
  if (!commit.empty()) recording.commit = commit;
  if (folder.empty()) return recording;
  const std::string path = folder + "/" + machine_slug(processor(), usable_core_count()) + ".jsonl";
  recording.lines.open(path, std::ios::app);
  if (recording.lines) return recording;
  fmt::print(stderr, "cannot append to {}\n", path);
  return std::nullopt;
}

std::string model_name(const std::string& directory) {
  std::string name = std::filesystem::path(directory).lexically_normal().string();
  while (name.ends_with('/')) name.pop_back();
  return name.substr(name.rfind('/') + 1);
}

nlohmann::ordered_json row_start(const std::string& commit, const std::string& name) {
  return {{"date", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
          {"commit", commit},
          {"processor", processor()},
          {"cores", usable_core_count()},
          {"name", name}};
}

}  // namespace deltafin::bench
