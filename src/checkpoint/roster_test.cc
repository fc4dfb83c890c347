#include "checkpoint/roster.h"

#include <gtest/gtest.h>

#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

TEST(Roster, FindsEveryTensorOfTheContract) {
  for (const char* const name : {"kimi-k3.json", "kimi-linear-48b.json"}) {
    const ModelContract contract = test::golden_contract(name);
    const Roster roster(contract);
    for (uint32_t i = 0; i < contract.globals.size(); ++i) {
      const Place place = roster.find(contract.globals[i].name);
      EXPECT_EQ(place.kind, PlaceKind::Global);
      EXPECT_EQ(place.index, i);
    }
    for (const uint32_t layer : {0u, 3u, static_cast<uint32_t>(contract.layers.size()) - 1}) {
      const std::vector<TensorSpec>& trunk = contract.layers[layer].trunk;
      for (uint32_t i = 0; i < trunk.size(); ++i) {
        const Place place = roster.find(trunk[i].name);
        EXPECT_EQ(place.kind, PlaceKind::Trunk) << trunk[i].name;
        EXPECT_EQ(place.layer, layer);
        EXPECT_EQ(place.index, i);
        EXPECT_EQ(roster.shapes(place), trunk[i].shapes);
      }
    }
  }
}

TEST(Roster, FindsEveryPartOfEveryExpert) {
  for (const char* const name : {"kimi-k3.json", "kimi-linear-48b.json"}) {
    const ModelContract contract = test::golden_contract(name);
    const Roster roster(contract);
    const uint32_t layer = 17;
    const uint32_t sets = expert_set_count(*contract.layers[layer].experts);
    for (uint32_t set = 0; set < sets; ++set) {
      for (const ExpertTensorSpec& tensor : expert_tensors(contract, layer, set)) {
        const Place place = roster.find(tensor.name);
        ASSERT_EQ(place.kind, PlaceKind::Expert) << tensor.name;
        EXPECT_EQ(place.layer, layer);
        EXPECT_EQ(place.index, set);
        EXPECT_EQ(place.part, tensor.part);
        EXPECT_EQ(roster.is_u8(place), tensor.is_u8);
        EXPECT_EQ(roster.shapes(place), (std::vector<std::vector<uint64_t>>{tensor.shape}));
      }
    }
  }
}

TEST(Roster, IgnoresWhatLiesOutsideTheLanguageModel) {
  const ModelContract k3 = test::golden_contract("kimi-k3.json");
  const Roster roster(k3);
  for (const char* const name :
       {"vision_tower.blocks.0.weight", "mm_projector.a", "model.norm.weight"}) {
    EXPECT_EQ(roster.find(name).kind, PlaceKind::Ignored) << name;
  }
}

TEST(Roster, DoesNotExpectWhatTheContractDoesNotName) {
  const ModelContract k3 = test::golden_contract("kimi-k3.json");
  const Roster roster(k3);
  const std::string experts = "language_model.model.layers.1.block_sparse_moe.experts.";
  for (const std::string& name : {
           std::string("language_model.model.layers.0.self_attn.q_norm.weight"),
           std::string("language_model.model.layers.93.input_layernorm.weight"),
           std::string("language_model.model.layers.0.block_sparse_moe.experts.0.w1.weight_packed"),
           std::string(
               "language_model.model.layers.01.block_sparse_moe.experts.0.w1.weight_packed"),
           experts + "896.w1.weight_packed",  // one too many
           experts + "007.w1.weight_packed",  // another spelling of 7
           experts + "99999999999.w1.weight_packed",
           experts + "-1.w1.weight_packed",
           experts + "0.w4.weight_packed",
           experts + "0.w1.weight",  // a plain expert where packed ones should be
           experts + "0.w1.weight_packed.more",
           experts,
           std::string("language_model."),
       }) {
    EXPECT_EQ(roster.find(name).kind, PlaceKind::Unexpected) << name;
  }
}

}  // namespace
}  // namespace deltafin::checkpoint
