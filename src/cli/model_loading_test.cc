#include "cli/model_loading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deltafin::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

checkpoint::ModelContract contract_with_experts(uint32_t expert_count) {
  checkpoint::ModelContract contract;
  checkpoint::LayerContract layer;
  layer.ffn = checkpoint::FfnKind::Moe;
  layer.experts = checkpoint::ExpertContract{.expert_count = expert_count,
                                             .input_dim = 1024,
                                             .inner_dim = 1024,
                                             .format = checkpoint::ExpertFormat::Plain};
  contract.layers.push_back(layer);
  return contract;
}

TEST(DefaultExpertCache, IsAQuarterOfTheMemoryAtMost) {
  // 64 experts of 6 MiB.
  const checkpoint::ModelContract contract = contract_with_experts(64);
  EXPECT_EQ(default_expert_cache(contract, 1ull << 30), 256ull << 20);
}

TEST(DefaultExpertCache, HoldsAllExpertsAtMost) {
  const uint64_t bytes = default_expert_cache(contract_with_experts(64), 1ull << 40);
  EXPECT_GE(bytes, 384ull << 20);
  EXPECT_LT(bytes, 400ull << 20);
}

TEST(DefaultExpertCache, Is64MebibytesAtLeast) {
  EXPECT_EQ(default_expert_cache(contract_with_experts(1), 1ull << 40), 64ull << 20);
  EXPECT_EQ(default_expert_cache(contract_with_experts(64), 0), 64ull << 20);
  EXPECT_EQ(default_expert_cache(contract_with_experts(64), std::nullopt), 64ull << 20);
}

TEST(EngineOptions, TakeTheFlagsWord) {
  EngineFlags flags;
  flags.machine.threads = 3;
  flags.expert_cache_bytes = 12345;
  flags.machine.isa = "baseline";
  const engine::EngineOptions options = engine_options(flags, contract_with_experts(1)).value();
  EXPECT_EQ(options.thread_count, 3u);
  EXPECT_EQ(options.expert_cache_bytes, 12345u);
  EXPECT_STREQ(options.kernels->name, "baseline");
}

TEST(EngineOptions, AreRefusedWithAnInstructionSetThatIsNotHere) {
  EngineFlags flags;
  flags.machine.isa = "avx1024";
  const Result<engine::EngineOptions> options = engine_options(flags, contract_with_experts(1));
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
