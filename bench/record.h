// What every benchmark program has in common: where its rows go, and how they begin.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace deltafin::bench {

// Takes "--NAME=VALUE" out of the arguments; `name` is "--NAME=". Empty when it is not there.
std::string take_flag(int& count, char** arguments, std::string_view name);

// From --record=FOLDER, which gets <machine>.jsonl to append to, and --commit=ID, the source that
// the program was built from.
struct Recording {
  std::string commit = "unknown";
  std::ofstream lines;  // not open when nobody wants them

  // Takes its flags. Empty when the file cannot be opened, which standard error then says.
  static std::optional<Recording> open(int& count, char** arguments);
  std::ostream* stream() { return lines.is_open() ? &lines : nullptr; }
};

// What rows call a model: the last folder of its path.
std::string model_name(const std::string& directory);

// When, of which source and where a row was measured.
nlohmann::ordered_json row_start(const std::string& commit, const std::string& name);

}  // namespace deltafin::bench
