#include "cli/disk_rate.h"

#include <chrono>
#include <vector>

#include "io/file.h"
#include "memory/probe.h"

namespace deltafin::cli {

std::optional<double> measure_disk(const std::string& directory) {
  constexpr std::chrono::milliseconds kTime{500};
  const io::PosixStorage storage;
  const Result<std::vector<io::DirectoryEntry>> entries = storage.list(directory);
  if (!entries) return std::nullopt;
  std::vector<std::string> shards;
  for (const io::DirectoryEntry& entry : *entries)
    if (entry.name.ends_with(".safetensors"))
      shards.push_back(io::join_path(directory, entry.name));
  const std::optional<memory::DiskRate> rate = memory::probe_disk(shards, kTime);
  if (!rate) return std::nullopt;
  return rate->bytes_per_second;
}

}  // namespace deltafin::cli
