#include "memory/probe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/golden.h"

namespace deltafin::memory {
namespace {

using std::chrono::milliseconds;

std::vector<std::string> shards_of_demo() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_path("models/demo")))
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  return paths;
}

TEST(ProbeOfADisk, ReadsShardsForAsLongAsItMay) {
  const auto start = std::chrono::steady_clock::now();
  const std::optional<DiskRate> rate = probe_disk(shards_of_demo(), milliseconds(50));
  ASSERT_TRUE(rate);
  EXPECT_GT(rate->bytes_per_second, 1e5);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(ProbeOfADisk, GoesThroughThePageCacheWhereItMust) {
  // /proc cannot be read directly, nor has it a size; a file in memory has one.
  const std::string path = "/dev/shm/deltafin-probe-" + std::to_string(::getpid());
  std::filesystem::copy_file(shards_of_demo().front(), path);
  const std::vector<std::string> paths = {path};
  const std::optional<DiskRate> rate = probe_disk(paths, milliseconds(20));
  std::filesystem::remove(path);
  ASSERT_TRUE(rate);
  EXPECT_GT(rate->bytes_per_second, 1e5);
}

TEST(ProbeOfADisk, SaysNothingWithoutAFile) {
  const std::vector<std::string> paths = {"/nowhere/model.safetensors", "/proc/self/status"};
  EXPECT_FALSE(probe_disk(paths, milliseconds(20)));
  EXPECT_FALSE(probe_disk({}, milliseconds(20)));
}

TEST(ProbeOfMemory, IsSlowerThanNoMachineAndFasterThanADisk) {
  ThreadTeam team(2);
  const std::optional<double> rate = probe_memory(team, milliseconds(60));
  ASSERT_TRUE(rate);
  EXPECT_GT(*rate, 1e8);
  EXPECT_LT(*rate, 1e14);
}

TEST(ProbeOfArithmetic, WorksForEveryFormatAndKernel) {
  ThreadTeam team(1);
  using numerics::WeightFormat;
  for (const numerics::Kernels& kernels : numerics::kernel_variants())
    for (const WeightFormat format : {WeightFormat::F32, WeightFormat::Bf16, WeightFormat::Mxfp4}) {
      const double rate = probe_arithmetic(team, kernels, format, milliseconds(1));
      EXPECT_GT(rate, 1e6) << kernels.name;
      EXPECT_LT(rate, 1e14) << kernels.name;
    }
}

}  // namespace
}  // namespace deltafin::memory
