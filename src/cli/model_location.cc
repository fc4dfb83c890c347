#include "cli/model_location.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace deltafin::cli {

namespace {

std::string executable_path() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

}  // namespace

void declare_model(CommandLine& line, std::optional<std::string>& model) {
  line.argument("MODEL",
                "a checkpoint directory, or demo for the bundled model (./demo for a folder)",
                model);
}

Result<std::string> required_model(const std::optional<std::string>& model, const char* command) {
  if (model && !model->empty()) return *model;
  return fail(
      ErrorCode::Usage,
      fmt::format("{} needs a MODEL{}\n  give a checkpoint directory, or demo for the bundled "
                  "model",
                  command, model ? ", and the one given is empty" : ""));
}

std::vector<std::string> bundled_model_folders(const std::string& override_folder,
                                               const std::string& executable,
                                               const std::string& source_folder) {
  if (!override_folder.empty()) return {override_folder};
  std::vector<std::string> folders;
  const std::filesystem::path beside = std::filesystem::path(executable).parent_path();
  if (!beside.empty()) {
    folders.push_back((beside.parent_path() / "share/deltafin/demo").string());
    folders.push_back((beside.parent_path().parent_path() / "models/demo").string());
  }
  if (!source_folder.empty()) folders.push_back(io::join_path(source_folder, "models/demo"));
  return folders;
}

Result<std::string> find_model(const io::Storage& storage, const std::string& model) {
  if (model != kBundledModel) return model;
  const char* override_folder = std::getenv("DELTAFIN_DEMO");
  const std::vector<std::string> folders = bundled_model_folders(
      override_folder != nullptr ? override_folder : "", executable_path(), DELTAFIN_SOURCE_DIR);
  for (const std::string& folder : folders)
    if (storage.exists(io::join_path(folder, "config.json"))) return folder;
  return fail(
      ErrorCode::BadModel,
      fmt::format("the bundled model is not there; looked in\n  {}\n  set DELTAFIN_DEMO to its "
                  "folder, or write ./demo for a folder of that name",
                  fmt::join(folders, "\n  ")));
}

}  // namespace deltafin::cli
