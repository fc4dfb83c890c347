#include "checkpoint/identity.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/safetensors.h"
#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

namespace fs = std::filesystem;

// A copy of a fixture in memory.
class Copy {
 public:
  explicit Copy(const char* name) {
    for (const fs::directory_entry& file : fs::directory_iterator(test::source_path(name)))
      if (file.is_regular_file()) files_[file.path().filename()] = test::read_file(file.path());
  }
  std::string& operator[](const std::string& name) { return files_[name]; }

  std::string identity() const {
    io::SimulatedStorage storage;
    for (const auto& [name, content] : files_) storage.add_file("/m/" + name, content);
    const Result<Checkpoint> checkpoint = Checkpoint::open(storage, "/m");
    if (!checkpoint) return "cannot open: " + checkpoint.error().what;
    const Result<Identity> identity = weak_identity(storage, *checkpoint);
    return identity ? to_hex(identity->sha256) : "error: " + identity.error().what;
  }

 private:
  std::map<std::string, std::string> files_;
};

constexpr const char* kSingle = "tests/golden/tiny-qwen3-single";
constexpr const char* kShard = "model.safetensors";

uint64_t data_begin(const std::string& shard) {
  return *parse_data_begin(std::as_bytes(std::span(shard)), shard.size());
}

TEST(Identity, IsOfTheContentNotOfThePlace) {
  Copy copy(kSingle);
  const std::string identity = copy.identity();
  EXPECT_EQ(identity.size(), 64u);
  EXPECT_EQ(Copy(kSingle).identity(), identity);
  const io::PosixStorage storage;
  const Result<Checkpoint> there = Checkpoint::open(storage, test::source_path(kSingle));
  ASSERT_TRUE(there);
  EXPECT_EQ(to_hex(weak_identity(storage, *there)->sha256), identity);
}

TEST(Identity, ChangesWithConfigHeaderAndSampledData) {
  const std::string identity = Copy(kSingle).identity();
  Copy config(kSingle);
  config["config.json"] += "\n";
  EXPECT_NE(config.identity(), identity);

  Copy header(kSingle);
  std::string& shard = header[kShard];
  const size_t format = shard.find("\"pt\"");
  ASSERT_LT(format, data_begin(shard));
  shard.replace(format, 4, "\"px\"");
  EXPECT_NE(header.identity(), identity);

  const uint64_t begin = data_begin(Copy(kSingle)[kShard]);
  const uint64_t size = Copy(kSingle)[kShard].size() - begin;
  ASSERT_GT(size, 5u * 16384) << "the fixture has no byte outside the samples";
  const uint64_t span = size - 16384;
  for (const uint64_t at : {uint64_t{0}, uint64_t{16383}, span / 3, span * 2 / 3, size - 1}) {
    Copy data(kSingle);
    data[kShard][begin + at] ^= 1;
    EXPECT_NE(data.identity(), identity) << at;
  }
}

// What makes it weak, and why it takes no time.
TEST(Identity, DoesNotSeeWeightsBetweenTheSamples) {
  Copy data(kSingle);
  data[kShard][data_begin(data[kShard]) + 16384] ^= 1;
  EXPECT_EQ(data.identity(), Copy(kSingle).identity());
}

TEST(Identity, DoesNotDependOnTheTokenizer) {
  Copy copy(kSingle);
  copy["tokenizer.json"] = "{}";
  EXPECT_EQ(copy.identity(), Copy(kSingle).identity());
}

TEST(Identity, DiffersBetweenAllFixtures) {
  std::map<std::string, std::string> seen;
  for (const char* name : {"tiny-k3", "tiny-kimi-linear", "tiny-qwen3.5-moe", "tiny-qwen3-moe",
                           "tiny-qwen3", "tiny-qwen3-single", "wide-k3"}) {
    const std::string identity = Copy(("tests/golden/" + std::string(name)).c_str()).identity();
    EXPECT_EQ(identity.size(), 64u) << identity;
    const auto [at, is_new] = seen.emplace(identity, name);
    EXPECT_TRUE(is_new) << name << " looks like " << at->second;
  }
}

}  // namespace
}  // namespace deltafin::checkpoint
