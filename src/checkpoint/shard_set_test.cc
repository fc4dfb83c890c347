#include "checkpoint/shard_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/simulated.h"

namespace deltafin::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The shards of a folder with these files, those that are not present marked with '!'.
std::vector<std::string> shards_of(const std::vector<std::pair<std::string, std::string>>& files,
                                   ProblemList& problems) {
  io::SimulatedStorage storage;
  for (const auto& [name, text] : files) storage.add_file("/m/" + name, text);
  std::vector<std::string> names;
  for (const Shard& shard : find_shards(storage, "/m", *storage.list("/m"), problems).shards) {
    names.push_back((shard.state == ShardState::Present ? "" : "!") + shard.name);
  }
  return names;
}

TEST(ShardSet, FollowsTheIndexAndReportsFilesOutsideIt) {
  ProblemList problems;
  EXPECT_THAT(
      shards_of({{"a.safetensors", ""},
                 {"extra.safetensors", ""},
                 {kIndexFile, R"({"weight_map":{"x":"a.safetensors","y":"b.safetensors"}})"}},
                problems),
      ElementsAre("a.safetensors", "!b.safetensors"));
  ASSERT_EQ(problems.kept().size(), 1u);
  EXPECT_EQ(problems.kept()[0].severity, Severity::Note);
  EXPECT_EQ(to_line(problems.kept()[0]), "extra.safetensors: is not in the index and is not read");
}

TEST(ShardSet, TakesModelSafetensorsAloneWhenThereIsNoIndex) {
  ProblemList problems;
  EXPECT_THAT(shards_of({{"model.safetensors", ""}, {"other.safetensors", ""}}, problems),
              ElementsAre("model.safetensors"));
  EXPECT_EQ(problems.count_of(ProblemKind::UnusedFile), 1u);
}

TEST(ShardSet, TakesEveryShardWhenThereIsNoIndex) {
  ProblemList problems;
  EXPECT_THAT(
      shards_of({{"b.safetensors", ""}, {"a.safetensors", ""}, {".x.safetensors", ""}}, problems),
      ElementsAre("a.safetensors", "b.safetensors"));
  EXPECT_THAT(problems.kept(), IsEmpty());
}

TEST(ShardSet, InfersMissingShardsFromTheNamesOfTheOthers) {
  ProblemList problems;
  EXPECT_THAT(
      shards_of(
          {{"model-00002-of-000004.safetensors", ""}, {"model-00003-of-000004.safetensors", ""}},
          problems),
      ElementsAre("!model-00001-of-000004.safetensors", "model-00002-of-000004.safetensors",
                  "model-00003-of-000004.safetensors", "!model-00004-of-000004.safetensors"));
}

TEST(ShardSet, InfersNothingFromANameThatCountsSomethingElse) {
  ProblemList problems;
  for (const char* const name : {"run-of-999999999.safetensors", "a-1-of-.safetensors",
                                 "x-3-of-4294967296.safetensors", "x-3-of-10001.safetensors"}) {
    EXPECT_THAT(shards_of({{name, ""}}, problems), ElementsAre(name));
  }
}

TEST(ShardSet, GoesOnWithoutADamagedIndex) {
  ProblemList problems;
  EXPECT_THAT(shards_of({{"a.safetensors", ""}, {kIndexFile, "{"}}, problems),
              ElementsAre("a.safetensors"));
  EXPECT_EQ(problems.count_of(ProblemKind::BadIndex), 1u);
  EXPECT_THAT(to_line(problems.kept()[0]),
              HasSubstr("model.safetensors.index.json: not valid JSON"));
}

TEST(ShardSet, RecognisesAPointerInPlaceOfTheIndex) {
  ProblemList problems;
  shards_of({{"a.safetensors", ""},
             {kIndexFile, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"}},
            problems);
  EXPECT_EQ(problems.count_of(ProblemKind::PointerFile), 1u);
  EXPECT_THAT(problems.kept()[0].advice, HasSubstr("git lfs pull"));
}

TEST(ShardSet, SaysWhenThereAreNoWeights) {
  ProblemList problems;
  EXPECT_THAT(shards_of({{"pytorch_model.bin", ""}}, problems), IsEmpty());
  EXPECT_THAT(to_line(problems.kept()[0]),
              HasSubstr("no *.safetensors file is there (pytorch_model.bin is another format)"));
}

}  // namespace
}  // namespace deltafin::checkpoint
