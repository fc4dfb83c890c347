#include "checkpoint/inventory.h"

#include <gtest/gtest.h>

#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

TEST(Inventory, OfKimiK3MatchesTheRelease) {
  const Inventory k3 = take_inventory(test::golden_contract("kimi-k3.json"));
  EXPECT_EQ(k3.layers_of(MixerKind::Kda), 69u);
  EXPECT_EQ(k3.layers_of(MixerKind::Mla), 24u);
  EXPECT_EQ(k3.layers_of(FfnKind::Dense), 1u);
  EXPECT_EQ(k3.layers_of(FfnKind::Moe), 92u);
  EXPECT_EQ(k3.tensor_count, 497'052u);
  EXPECT_EQ(k3.expert_bytes, 17'547'264u);
  EXPECT_EQ(k3.routed_bytes, 1'446'456'066'048u);
  EXPECT_EQ(k3.embedding_bytes, 2'348'810'240u);
  EXPECT_EQ(k3.lm_head_bytes, 2'348'810'240u);
  // 16 experts in each of 92 layers: 25.83 GB
  EXPECT_EQ(k3.cold_expert_bytes, 25'829'572'608u);
  // All shards hold 1,560,860,324,864 bytes; the rest is vision tower and projector.
  EXPECT_EQ(k3.total_bytes(), 1'560'860'324'864u - 894'717'952u);
  EXPECT_EQ(k3.cold_trunk_bytes, k3.trunk_bytes + k3.lm_head_bytes + 7168 * 2);
  EXPECT_EQ(k3.trunk_bytes + k3.lm_head_bytes, 111'160'730'624u);
  // 2.8 T parameters, of which 104 G work on a token
  EXPECT_EQ(k3.parameter_count / 1'000'000'000, 2779u);
  EXPECT_EQ(k3.active_parameter_count / 1'000'000'000, 104u);
}

TEST(Inventory, OfKimiLinearMatchesItsName) {
  const Inventory linear = take_inventory(test::golden_contract("kimi-linear-48b.json"));
  EXPECT_EQ(linear.layers_of(MixerKind::Kda), 20u);
  EXPECT_EQ(linear.layers_of(MixerKind::Mla), 7u);
  EXPECT_EQ(linear.layers_of(FfnKind::Moe), 26u);
  EXPECT_EQ(linear.expert_bytes, 3u * 1024 * 2304 * 2);
  EXPECT_EQ(linear.cold_expert_bytes, 26u * 8 * linear.expert_bytes);
  // "48B-A3B"
  EXPECT_EQ(linear.parameter_count / 1'000'000'000, 49u);
  EXPECT_EQ(linear.active_parameter_count / 1'000'000'000, 3u);
}

TEST(Inventory, OfQwen35MatchesItsName) {
  const Inventory qwen = take_inventory(test::golden_contract("qwen3.5-122b-a10b.json"));
  EXPECT_EQ(qwen.layers_of(MixerKind::GatedDeltaNet), 36u);
  EXPECT_EQ(qwen.layers_of(MixerKind::GroupedQuery), 12u);
  EXPECT_EQ(qwen.layers_of(MixerKind::Kda), 0u);
  EXPECT_EQ(qwen.layers_of(FfnKind::Moe), 48u);
  // Two extents an expert: gate and up together, and down.
  EXPECT_EQ(qwen.expert_bytes, 12'582'912u + 6'291'456u);
  EXPECT_EQ(qwen.routed_bytes, 48u * 256 * qwen.expert_bytes);
  // 8 experts in each of 48 layers: 7.25 GB
  EXPECT_EQ(qwen.cold_expert_bytes, 7'247'757'312u);
  EXPECT_EQ(qwen.embedding_bytes, 1'525'678'080u);
  EXPECT_EQ(qwen.lm_head_bytes, 1'525'678'080u);
  EXPECT_EQ(qwen.cold_trunk_bytes, qwen.trunk_bytes + qwen.lm_head_bytes + 3072 * 2);
  EXPECT_EQ(qwen.parameter_count, 122'111'526'912u);
  EXPECT_EQ(qwen.active_parameter_count / 1'000'000'000, 9u);

  EXPECT_EQ(take_inventory(test::golden_contract("qwen3.5-35b-a3b.json")).cold_expert_bytes,
            40u * 8 * 3 * 512 * 2048 * 2);
  EXPECT_EQ(take_inventory(test::golden_contract("qwen3.5-397b-a17b.json")).cold_expert_bytes,
            60ull * 10 * 3 * 1024 * 4096 * 2);
}

TEST(Inventory, OfQwen3MoeMatchesItsName) {
  const Inventory qwen = take_inventory(test::golden_contract("qwen3-30b-a3b.json"));
  EXPECT_EQ(qwen.layers_of(MixerKind::GroupedQuery), 48u);
  EXPECT_EQ(qwen.expert_bytes, 3u * 768 * 2048 * 2);
  EXPECT_EQ(qwen.parameter_count / 1'000'000'000, 30u);
  EXPECT_EQ(qwen.active_parameter_count / 1'000'000'000, 3u);
}

TEST(Inventory, CountsATiedEmbeddingOnceAsParametersAndTwiceAsBytes) {
  const ModelContract contract = test::golden_contract("qwen3-0.6b.json");
  const Inventory qwen = take_inventory(contract);
  EXPECT_EQ(qwen.layers_of(FfnKind::Dense), 28u);
  EXPECT_EQ(qwen.expert_bytes, 0u);
  EXPECT_EQ(qwen.cold_expert_bytes, 0u);
  EXPECT_EQ(qwen.parameter_count, 596'049'920u);  // "0.6B"
  EXPECT_EQ(qwen.active_parameter_count, qwen.parameter_count);
  EXPECT_EQ(parameter_count(contract), qwen.parameter_count);
  EXPECT_EQ(qwen.lm_head_bytes, qwen.embedding_bytes);
  EXPECT_EQ(qwen.total_bytes(), 2 * qwen.parameter_count + qwen.lm_head_bytes);
  EXPECT_EQ(qwen.cold_trunk_bytes, qwen.trunk_bytes + qwen.embedding_bytes);
}

}  // namespace
}  // namespace deltafin::checkpoint
