#include "parts.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace deltafin::bench {

std::optional<Parts> Parts::open(int& count, char** arguments) {
  std::optional<Recording> recording = Recording::open(count, arguments);
  if (!recording) return std::nullopt;
  Parts parts;
  parts.recording_ = std::move(*recording);
  parts.filter_ = take_flag(count, arguments, "--benchmark_filter=");
  const std::string repetitions = take_flag(count, arguments, "--benchmark_repetitions=");
  parts.rounds_ = size_t(std::max(1, std::atoi(repetitions.c_str())));
  return parts;
}

void Parts::write(const std::string& name, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line = row_start(recording_.commit, name);
  line.update(fields);
  line.update(nlohmann::ordered_json{{"load", load_average()}, {"others", others_share_}});
  std::fflush(stdout);
  if (std::ostream* stream = recording_.stream()) *stream << line << std::endl;
}

}  // namespace deltafin::bench
