#include "checkpoint/download_traces.h"

#include <algorithm>

namespace deltafin::checkpoint {
namespace {

constexpr std::string_view kPointerStart = "version https://git-lfs";
static_assert(kPointerStart.size() <= kPointerFileBytes);

// huggingface_hub, wget2 and curl scripts, aria2, browsers.
constexpr std::string_view kUnfinishedSuffixes[] = {
    ".incomplete", ".part", ".partial", ".tmp", ".aria2", ".crdownload", ".download",
};

// Relative to the checkpoint's folder; the last one is where the links of a snapshot point.
constexpr const char* kDownloadFolders[] = {"", ".cache/huggingface/download", "../../blobs"};

bool is_unfinished(std::string_view name) {
  return std::any_of(std::begin(kUnfinishedSuffixes), std::end(kUnfinishedSuffixes),
                     [name](std::string_view suffix) { return name.ends_with(suffix); });
}

}  // namespace

bool is_pointer_file(std::string_view first_bytes) {
  return first_bytes.starts_with(kPointerStart);
}

std::vector<std::string> find_unfinished_files(const io::Storage& storage,
                                               const std::string& directory) {
  std::vector<std::string> found;
  for (const std::string folder : kDownloadFolders) {
    const std::string path = folder.empty() ? directory : io::join_path(directory, folder);
    if (!storage.is_directory(path)) continue;
    const Result<std::vector<io::DirectoryEntry>> entries = storage.list(path);
    if (!entries) continue;  // only a hint
    for (const io::DirectoryEntry& entry : *entries) {
      if (entry.is_directory || !is_unfinished(entry.name)) continue;
      found.push_back(folder.empty() ? entry.name : io::join_path(folder, entry.name));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace deltafin::checkpoint
