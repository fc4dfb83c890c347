#include "cli/model_loading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/memory_planning.h"
#include "cli/saved_state.h"

namespace deltafin::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const std::string kDemo = DELTAFIN_SOURCE_DIR "/models/demo";

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
  const io::PosixStorage storage;
  ModelPreparation first = ModelPreparation::create(storage, kDemo, {}).value();
  const Result<std::unique_ptr<LoadedModel>> whole = LoadedModel::open(first, cancel);
  ASSERT_TRUE(whole);
  EXPECT_EQ((*whole)->engine().layer_count(), 8u);
  cancel.cancel();
  ModelPreparation second = ModelPreparation::create(storage, kDemo, {}).value();
  const Result<std::unique_ptr<LoadedModel>> stopped = LoadedModel::open(second, cancel);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::Cancelled);
}

// The real file system, which counts how often an index is opened: every survey reads it.
class CountingStorage final : public io::Storage {
 public:
  Result<std::unique_ptr<io::File>> open(const std::string& path) const override {
    if (path.ends_with("index.json")) ++surveys;
    return storage_.open(path);
  }
  Result<std::vector<io::DirectoryEntry>> list(const std::string& path) const override {
    return storage_.list(path);
  }
  bool exists(const std::string& path) const override { return storage_.exists(path); }
  bool is_directory(const std::string& path) const override { return storage_.is_directory(path); }

  mutable int surveys = 0;

 private:
  io::PosixStorage storage_;
};

TEST(ModelPreparation, SurveysTheCheckpointOnceForAll) {
  const CountingStorage storage;
  ModelPreparation model = ModelPreparation::create(storage, kDemo, {}).value();
  EXPECT_EQ(storage.surveys, 0);
  ASSERT_TRUE(state_owner(model));
  ASSERT_TRUE(plan_memory({}, {}, model));
  ASSERT_TRUE(LoadedModel::open(model, CancelToken()));
  EXPECT_EQ(storage.surveys, 1);
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
