#include "cli/model_loading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deltafin::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(EngineOptions, TakeTheFlagsWord) {
  EngineFlags flags;
  flags.machine.threads = 3;
  flags.expert_cache_bytes = 12345;
  flags.machine.isa = "baseline";
  const engine::EngineOptions options = engine_options(flags).value();
  EXPECT_EQ(options.thread_count, 3u);
  EXPECT_EQ(options.expert_cache_bytes, 12345u);
  EXPECT_STREQ(options.kernels->name, "baseline");
}

TEST(EngineOptions, AreRefusedWithAnInstructionSetThatIsNotHere) {
  EngineFlags flags;
  flags.machine.isa = "avx1024";
  const Result<engine::EngineOptions> options = engine_options(flags);
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().code, ErrorCode::Usage);
  EXPECT_THAT(options.error().what, HasSubstr("--isa: found \"avx1024\""));
}

TEST(LoadedModel, IsNotLoadedToTheEndOnceCancelled) {
  CancelToken cancel;
  const std::string demo = DELTAFIN_SOURCE_DIR "/models/demo";
  const Result<std::unique_ptr<LoadedModel>> whole = LoadedModel::open(demo, {}, {}, cancel);
  ASSERT_TRUE(whole);
  EXPECT_EQ((*whole)->engine().layer_count(), 8u);
  cancel.cancel();
  const Result<std::unique_ptr<LoadedModel>> stopped = LoadedModel::open(demo, {}, {}, cancel);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::Cancelled);
}

TEST(UnknownFields, AreOneLine) {
  checkpoint::ModelContract contract;
  EXPECT_EQ(unknown_fields_warning(contract), "");
  contract.unknown_fields = {"a"};
  EXPECT_EQ(unknown_fields_warning(contract),
            "config.json has a field that is unknown here and ignored: a");
  contract.unknown_fields = {"a", "b", "c", "d", "e", "f", "g", "h"};
  EXPECT_THAT(unknown_fields_warning(contract), HasSubstr("8 fields that are unknown"));
  EXPECT_THAT(unknown_fields_warning(contract), EndsWith("e, f and 2 more"));
}

TEST(ReadContract, SaysWhatLiesThereInstead) {
  const io::PosixStorage storage;
  const Result<checkpoint::ModelContract> missing = read_contract(storage, "/nowhere/model");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::BadModel);
  EXPECT_THAT(missing.error().what, HasSubstr("/nowhere/model: no such folder"));
}

}  // namespace
}  // namespace deltafin::cli
