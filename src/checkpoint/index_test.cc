#include "checkpoint/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"

namespace deltafin::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_in(const Index& index, uint32_t shard) {
  std::vector<std::string> names;
  for (const Index::Entry& entry : index.entries_of(shard)) {
    names.emplace_back(index.name(entry));
  }
  return names;
}

TEST(Index, SortsShardsAndTheirTensorsByName) {
  const Result<Index> index = Index::parse(
      R"({"weight_map":{"z":"b.safetensors","y":"a.safetensors","x":"b.safetensors"}})");
  ASSERT_TRUE(index.has_value()) << index.error().what;
  EXPECT_THAT(index->shards(), ElementsAre("a.safetensors", "b.safetensors"));
  EXPECT_THAT(names_in(*index, 0), ElementsAre("y"));
  EXPECT_THAT(names_in(*index, 1), ElementsAre("x", "z"));
  EXPECT_EQ(index->tensor_count(), 3u);
}

TEST(Index, FindsTheShardOfATensor) {
  const Result<Index> index =
      Index::parse(R"({"weight_map":{"x":"a.safetensors","y":"b.safetensors"}})");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->shard_of("y"), 1u);
  EXPECT_EQ(index->shard_of("z"), std::nullopt);
}

TEST(Index, StaysWholeWhenItMoves) {
  Result<Index> first = Index::parse(R"({"weight_map":{"x":"a.safetensors"}})");
  ASSERT_TRUE(first.has_value());
  const Index moved = std::move(*first);
  EXPECT_THAT(names_in(moved, 0), ElementsAre("x"));
}

TEST(Index, TakesTotalSizeAsIntegerOrFloatOrNotAtAll) {
  const char* const map = R"("weight_map":{"x":"a.safetensors"}})";
  const auto total = [&](const std::string& metadata) {
    const Result<Index> index = Index::parse("{" + metadata + map);
    EXPECT_TRUE(index.has_value()) << metadata;
    return index ? index->total_size() : std::nullopt;
  };
  EXPECT_EQ(total(R"("metadata":{"total_size":1560860324864},)"), 1560860324864.0);
  EXPECT_EQ(total(R"("metadata":{"total_size":2.5e3},)"), 2500.0);
  EXPECT_EQ(total(R"("metadata":{"total_parameters":7,"total_size":9},)"), 9.0);
  EXPECT_EQ(total(R"("metadata":{"total_size":"many"},)"), std::nullopt);
  EXPECT_EQ(total(R"("metadata":{},)"), std::nullopt);
  EXPECT_EQ(total(R"("metadata":null,)"), std::nullopt);
  EXPECT_EQ(total(""), std::nullopt);
}

struct BadIndex {
  const char* name;
  const char* json;
  const char* message;
};

class BadIndexes : public testing::TestWithParam<BadIndex> {};

TEST_P(BadIndexes, AreRefusedWithAReason) {
  const Result<Index> index = Index::parse(GetParam().json);
  ASSERT_FALSE(index.has_value());
  EXPECT_EQ(index.error().code, ErrorCode::BadModel);
  EXPECT_THAT(index.error().what, HasSubstr(GetParam().message));
}

constexpr BadIndex kBadIndexes[] = {
    {"Empty", "", "not valid JSON"},
    {"CutOff", R"({"weight_map":{"x":"a.safe)", "not valid JSON"},
    {"NotAnObject", "[]", "not a JSON object"},
    {"GoesOn", R"({"weight_map":{"x":"a.safetensors"}}{})", "goes on after the closing brace"},
    {"NoMap", R"({"metadata":{}})", "weight_map is missing"},
    {"EmptyMap", R"({"weight_map":{}})", "weight_map is empty"},
    {"MapIsNoObject", R"({"weight_map":[]})", "weight_map is not an object"},
    {"MapTwice", R"({"weight_map":{"x":"a.safetensors"},"weight_map":{"y":"a.safetensors"}})",
     "weight_map is given twice"},
    {"ShardIsNoString", R"({"weight_map":{"x":1}})", "the shard of \"x\" is not a string"},
    {"TensorTwice", R"({"weight_map":{"x":"a.safetensors","x":"a.safetensors"}})",
     "weight_map lists x twice"},
    {"ParentFolder", R"({"weight_map":{"x":"../a.safetensors"}})",
     "names the shard \"../a.safetensors\", expected the plain name"},
    {"AbsolutePath", R"({"weight_map":{"x":"/etc/a.safetensors"}})", "expected the plain name"},
    {"Subfolder", R"({"weight_map":{"x":"b/a.safetensors"}})", "expected the plain name"},
    {"Backslash", R"({"weight_map":{"x":"..\\a.safetensors"}})", "expected the plain name"},
    {"NulByte", R"({"weight_map":{"x":"a\u0000.safetensors"}})", "expected the plain name"},
    {"EmptyShard", R"({"weight_map":{"x":""}})", "expected the plain name"},
    {"OtherFormat", R"({"weight_map":{"x":"pytorch_model.bin"}})",
     "the plain name of a *.safetensors file"},
    {"ControlCharacter", R"({"weight_map":{"x\u0007":"a.safetensors"}})", "control characters"},
};

INSTANTIATE_TEST_SUITE_P(Index, BadIndexes, testing::ValuesIn(kBadIndexes),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Index, PlainFileNamesStayInTheirFolder) {
  EXPECT_TRUE(is_plain_file_name("model-00001-of-000096.safetensors"));
  EXPECT_TRUE(is_plain_file_name("..a"));
  for (const char* const name : {"", ".", "..", "a/b", "/a", "a\\b", "a\nb"}) {
    EXPECT_FALSE(is_plain_file_name(name)) << name;
  }
  EXPECT_FALSE(is_plain_file_name(std::string(256, 'a')));
}

}  // namespace
}  // namespace deltafin::checkpoint
