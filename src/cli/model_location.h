// What MODEL on the command line means.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"
#include "io/file.h"

namespace deltafin::cli {

// The word that stands for the checkpoint that comes with the program. A folder of that name is
// spelled ./demo.
inline constexpr const char* kBundledModel = "demo";

// Declares the MODEL argument of a command that needs a whole checkpoint.
void declare_model(CommandLine& line, std::optional<std::string>& model);

// The MODEL argument of `command`. Errors: Usage when it is missing or empty.
Result<std::string> required_model(const std::optional<std::string>& model, const char* command);

// The folders in which the bundled checkpoint may lie, most likely first: `override_folder` alone
// if it is not empty; else <prefix>/share/deltafin/demo beside an installed <prefix>/bin/deltafin,
// the source tree around build/<preset>/deltafin, and `source_folder`.
std::vector<std::string> bundled_model_folders(const std::string& override_folder,
                                               const std::string& executable,
                                               const std::string& source_folder);

// `model` as a directory: itself, or for "demo" the first of those folders that has a config.json
// (override_folder is $DELTAFIN_DEMO). Errors: BadModel when "demo" is nowhere, saying where we
// looked. Any other name is returned unseen.
Result<std::string> find_model(const io::Storage& storage, const std::string& model);

}  // namespace deltafin::cli
