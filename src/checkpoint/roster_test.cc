#include "checkpoint/roster.h"

#include <gtest/gtest.h>

#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

TEST(Roster, FindsEveryTensorOfTheContract) {
  for (const char* const name : {"kimi-k3.json", "kimi-linear-48b.json", "qwen3.5-35b-a3b.json",
                                 "qwen3-30b-a3b.json", "qwen3-0.6b.json"}) {
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
  for (const char* const name :
       {"kimi-k3.json", "kimi-linear-48b.json", "qwen3.5-35b-a3b.json", "qwen3-30b-a3b.json"}) {
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

TEST(Roster, HasOnePlaceForAllExpertsOfALayerThatAreFused) {
  const ModelContract qwen = test::golden_contract("qwen3.5-35b-a3b.json");
  const Roster roster(qwen);
  const std::string experts = "model.language_model.layers.39.mlp.experts.";
  const Place gate_up = roster.find(experts + "gate_up_proj");
  EXPECT_EQ(gate_up.kind, PlaceKind::Expert);
  EXPECT_EQ(gate_up.layer, 39u);
  EXPECT_EQ(gate_up.index, 0u);
  EXPECT_EQ(gate_up.part, ExpertPart::W1);
  EXPECT_EQ(roster.shapes(gate_up), (std::vector<std::vector<uint64_t>>{{256, 1024, 2048}}));
  const Place down = roster.find(experts + "down_proj");
  EXPECT_EQ(down.kind, PlaceKind::Expert);
  EXPECT_EQ(down.part, ExpertPart::W2);
  EXPECT_EQ(roster.shapes(down), (std::vector<std::vector<uint64_t>>{{256, 2048, 512}}));
}

TEST(Roster, IgnoresPredictionLayersAndVisionTowerOfQwen35ByName) {
  const ModelContract qwen = test::golden_contract("qwen3.5-35b-a3b.json");
  const Roster roster(qwen);
  for (const char* const name :
       {"mtp.fc.weight", "mtp.layers.0.mlp.experts.0.gate_proj.weight",
        "model.visual.blocks.0.norm1.weight", "model.visual.pos_embed.weight"}) {
    EXPECT_EQ(roster.find(name).kind, PlaceKind::Ignored) << name;
  }
  // What is near those names is not among them.
  for (const char* const name : {"model.visual", "mtp", "model.language_model.mtp.fc.weight",
                                 "visual.pos_embed.weight", "model.norm.weight"}) {
    EXPECT_EQ(roster.find(name).kind, PlaceKind::Unexpected) << name;
  }
  const ModelContract dense = test::golden_contract("qwen3-0.6b.json");
  EXPECT_EQ(Roster(dense).find("mtp.fc.weight").kind, PlaceKind::Unexpected);
}

TEST(Roster, DoesNotExpectExpertsInAnotherLayout) {
  const ModelContract fused = test::golden_contract("qwen3.5-35b-a3b.json");
  const Roster of_fused(fused);
  const std::string stacked = "model.language_model.layers.0.mlp.experts.";
  for (const char* const rest : {"0.gate_proj.weight", "0.gate_up_proj", "gate_up_proj.weight",
                                 "gate_proj", "down_proj.0", ".gate_up_proj", ""}) {
    EXPECT_EQ(of_fused.find(stacked + rest).kind, PlaceKind::Unexpected) << rest;
  }
  const ModelContract single = test::golden_contract("qwen3-30b-a3b.json");
  const Roster of_single(single);
  const std::string numbered = "model.layers.0.mlp.experts.";
  for (const char* const rest : {"gate_up_proj", "down_proj", "128.gate_proj.weight",
                                 "01.gate_proj.weight", "0.w1.weight", "0.gate_proj"}) {
    EXPECT_EQ(of_single.find(numbered + rest).kind, PlaceKind::Unexpected) << rest;
  }
  EXPECT_EQ(of_single.find("model.layers.0.block_sparse_moe.experts.0.w1.weight").kind,
            PlaceKind::Unexpected);
}

}  // namespace
}  // namespace deltafin::checkpoint
