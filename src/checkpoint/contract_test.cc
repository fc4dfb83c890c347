#include "checkpoint/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

using Shapes = std::vector<std::vector<uint64_t>>;

const TensorSpec& find(const std::vector<TensorSpec>& list, TensorRole role) {
  for (const TensorSpec& spec : list) {
    if (spec.role == role) return spec;
  }
  ADD_FAILURE() << "no such role: " << static_cast<int>(role);
  return list.front();
}

bool has(const std::vector<TensorSpec>& list, TensorRole role) {
  for (const TensorSpec& spec : list) {
    if (spec.role == role) return true;
  }
  return false;
}

TEST(Contract, AsksForTheTensorsOfTheK3Release) {
  const ModelContract k3 = test::golden_contract("kimi-k3.json");
  EXPECT_EQ(k3.globals.size(), 5u);
  EXPECT_EQ(k3.layers[0].trunk.size(), 23u);
  EXPECT_EQ(k3.layers[1].trunk.size(), 28u);
  EXPECT_EQ(k3.layers[3].trunk.size(), 22u);
  // 497,220 in the release, 168 of them in the vision tower and its projector.
  EXPECT_EQ(tensor_count(k3), 497'220u - 168u);
}

TEST(Contract, GivesK3sTensorsTheirPublishedShapes) {
  using enum TensorRole;
  const ModelContract k3 = test::golden_contract("kimi-k3.json");
  const std::vector<TensorSpec>& kda = k3.layers[1].trunk;
  const std::vector<TensorSpec>& mla = k3.layers[92].trunk;

  EXPECT_EQ(find(k3.globals, Embedding).shapes, (Shapes{{163840, 7168}}));
  EXPECT_EQ(find(k3.globals, OutputResProj).shapes, (Shapes{{1, 7168}}));
  EXPECT_EQ(find(kda, QProj).shapes, (Shapes{{12288, 7168}}));
  EXPECT_EQ(find(kda, GProj).shapes, (Shapes{{12288, 7168}}));
  EXPECT_EQ(find(kda, KConv).shapes, (Shapes{{12288, 1, 4}}));
  EXPECT_EQ(find(kda, DecayA).shapes, (Shapes{{128, 7168}}));
  EXPECT_EQ(find(kda, DecayB).shapes, (Shapes{{12288, 128}}));
  EXPECT_EQ(find(kda, BetaProj).shapes, (Shapes{{96, 7168}}));
  EXPECT_EQ(find(kda, ALog).shapes, (Shapes{{128}, {96}, {1, 1, 96, 1}}));
  EXPECT_EQ(find(kda, DtBias).shapes, (Shapes{{12288}}));
  EXPECT_EQ(find(kda, HeadNorm).shapes, (Shapes{{128}}));
  EXPECT_EQ(find(kda, OProj).shapes, (Shapes{{7168, 12288}}));
  EXPECT_EQ(find(mla, QueryA).shapes, (Shapes{{1536, 7168}}));
  EXPECT_EQ(find(mla, QueryB).shapes, (Shapes{{18432, 1536}}));
  EXPECT_EQ(find(mla, KvA).shapes, (Shapes{{576, 7168}}));
  EXPECT_EQ(find(mla, KvB).shapes, (Shapes{{24576, 512}}));
  EXPECT_EQ(find(mla, GProj).shapes, (Shapes{{12288, 7168}}));
  EXPECT_EQ(find(k3.layers[0].trunk, MlpDown).shapes, (Shapes{{7168, 33792}}));
  EXPECT_EQ(find(kda, Router).shapes, (Shapes{{896, 7168}}));
  EXPECT_EQ(find(kda, RouterBias).shapes, (Shapes{{896}}));
  EXPECT_EQ(find(kda, LatentDown).shapes, (Shapes{{3584, 7168}}));
  EXPECT_EQ(find(kda, LatentUp).shapes, (Shapes{{7168, 3584}}));
  EXPECT_EQ(find(kda, SharedGate).shapes, (Shapes{{6144, 7168}}));
  EXPECT_EQ(find(kda, SharedDown).shapes, (Shapes{{7168, 6144}}));
  EXPECT_EQ(find(kda, ALog).name, "language_model.model.layers.1.self_attn.A_log");
  EXPECT_EQ(find(kda, LatentNorm).name,
            "language_model.model.layers.1.block_sparse_moe.routed_expert_norm.weight");
}

TEST(Contract, GivesKimiLinearItsOlderForm) {
  using enum TensorRole;
  const ModelContract linear = test::golden_contract("kimi-linear-48b.json");
  const std::vector<TensorSpec>& kda = linear.layers[1].trunk;
  const std::vector<TensorSpec>& mla = linear.layers[3].trunk;
  EXPECT_EQ(linear.globals.size(), 3u);
  EXPECT_EQ(find(linear.globals, LmHead).name, "lm_head.weight");
  EXPECT_EQ(find(kda, GateA).shapes, (Shapes{{128, 2304}}));
  EXPECT_EQ(find(kda, GateB).shapes, (Shapes{{4096, 128}}));
  EXPECT_EQ(find(kda, ALog).shapes, (Shapes{{32}, {1, 1, 32, 1}, {128}}));
  EXPECT_EQ(find(mla, QProj).shapes, (Shapes{{6144, 2304}}));
  for (const TensorRole role :
       {GProj, QueryA, LatentDown, LatentNorm, MlpResNorm, AttentionResProj}) {
    EXPECT_FALSE(has(kda, role)) << static_cast<int>(role);
    EXPECT_FALSE(has(mla, role)) << static_cast<int>(role);
  }
}

TEST(Contract, CallsOnlyPlainMatricesMatrices) {
  for (const char* const name : {"kimi-k3.json", "kimi-linear-48b.json", "qwen3.5-35b-a3b.json",
                                 "qwen3-30b-a3b.json", "qwen3-0.6b.json"}) {
    const ModelContract contract = test::golden_contract(name);
    std::vector<TensorSpec> all = contract.globals;
    for (const LayerContract& layer : contract.layers) {
      all.insert(all.end(), layer.trunk.begin(), layer.trunk.end());
    }
    for (const TensorSpec& spec : all) {
      // A gate is multiplied with the token, though it has one row.
      const bool is_gate = spec.role == TensorRole::SharedExpertGate;
      const bool has_two_axes = spec.shapes.front().size() == 2 && spec.shapes.front()[0] > 1;
      EXPECT_EQ(spec.kind == TensorKind::Matrix, has_two_axes || is_gate) << spec.name;
      if (spec.kind == TensorKind::Matrix) {
        EXPECT_EQ(spec.shapes.size(), 1u) << spec.name;
      }
    }
  }
}

TEST(Contract, NamesEveryTensorOnce) {
  const ModelContract k3 = test::golden_contract("kimi-k3.json");
  std::set<std::string> names;
  size_t count = 0;
  const auto add = [&](const std::vector<TensorSpec>& list) {
    for (const TensorSpec& spec : list) names.insert(spec.name);
    count += list.size();
  };
  add(k3.globals);
  for (const LayerContract& layer : k3.layers) add(layer.trunk);
  EXPECT_EQ(names.size(), count);
}

TEST(Contract, ListsTheSixPartsOfAPackedExpert) {
  const ModelContract k3 = test::golden_contract("kimi-k3.json");
  const std::vector<ExpertTensorSpec> parts = expert_tensors(k3, 92, 895);
  ASSERT_EQ(parts.size(), kExpertPartCount);
  uint64_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(parts[i].part), i);
    EXPECT_TRUE(parts[i].is_u8);
    bytes += parts[i].shape[0] * parts[i].shape[1];
  }
  EXPECT_EQ(bytes, 17'547'264u);
  EXPECT_EQ(parts[0].name,
            "language_model.model.layers.92.block_sparse_moe.experts.895.w1.weight_packed");
  EXPECT_EQ(parts[0].shape[0], 3072u);
  EXPECT_EQ(parts[0].shape[1], 1792u);
  EXPECT_EQ(parts[1].shape[1], 112u);
  EXPECT_EQ(parts[5].name,
            "language_model.model.layers.92.block_sparse_moe.experts.895.w2.weight_scale");
  EXPECT_EQ(parts[5].shape[0], 3584u);
  EXPECT_EQ(parts[5].shape[1], 96u);
}

TEST(Contract, ListsTheThreePartsOfAPlainExpert) {
  const ModelContract linear = test::golden_contract("kimi-linear-48b.json");
  const std::vector<ExpertTensorSpec> parts = expert_tensors(linear, 1, 0);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].name, "model.layers.1.block_sparse_moe.experts.0.w1.weight");
  EXPECT_EQ(parts[0].shape[0], 1024u);
  EXPECT_EQ(parts[0].shape[1], 2304u);
  EXPECT_EQ(parts[1].part, ExpertPart::W3);
  EXPECT_EQ(parts[2].part, ExpertPart::W2);
  EXPECT_EQ(parts[2].shape[0], 2304u);
  EXPECT_FALSE(parts[2].is_u8);
}

TEST(Contract, GivesQwen35sTensorsTheirRoles) {
  using enum TensorRole;
  const ModelContract qwen = test::golden_contract("qwen3.5-122b-a10b.json");
  const std::vector<TensorSpec>& delta = qwen.layers[0].trunk;
  const std::vector<TensorSpec>& attention = qwen.layers[3].trunk;
  const size_t prefix = std::string("model.language_model.layers.0.").size();
  const auto name = [&](const TensorSpec& spec) { return spec.name.substr(prefix); };
  EXPECT_EQ(name(find(delta, QkvProj)), "linear_attn.in_proj_qkv.weight");
  EXPECT_EQ(name(find(delta, ZProj)), "linear_attn.in_proj_z.weight");
  EXPECT_EQ(name(find(delta, BetaProj)), "linear_attn.in_proj_b.weight");
  EXPECT_EQ(name(find(delta, DecayProj)), "linear_attn.in_proj_a.weight");
  EXPECT_EQ(name(find(delta, QkvConv)), "linear_attn.conv1d.weight");
  EXPECT_EQ(name(find(delta, ALog)), "linear_attn.A_log");
  EXPECT_EQ(name(find(delta, DtBias)), "linear_attn.dt_bias");
  EXPECT_EQ(name(find(delta, HeadNorm)), "linear_attn.norm.weight");
  EXPECT_EQ(name(find(delta, OProj)), "linear_attn.out_proj.weight");
  EXPECT_EQ(name(find(attention, QProj)), "self_attn.q_proj.weight");
  EXPECT_EQ(name(find(attention, QNorm)), "self_attn.q_norm.weight");
  EXPECT_EQ(name(find(attention, KNorm)), "self_attn.k_norm.weight");
  EXPECT_EQ(name(find(attention, OProj)), "self_attn.o_proj.weight");
  EXPECT_EQ(name(find(attention, Router)), "mlp.gate.weight");
  EXPECT_EQ(name(find(attention, SharedGate)), "mlp.shared_expert.gate_proj.weight");
  EXPECT_EQ(name(find(attention, SharedExpertGate)), "mlp.shared_expert_gate.weight");
  // Query and gate of each head: 2 x 32 x 256 rows
  EXPECT_EQ(find(attention, QProj).shapes, (Shapes{{16384, 3072}}));
  EXPECT_EQ(find(delta, QkvConv).kind, TensorKind::Vector);
  EXPECT_EQ(find(delta, ALog).published, DType::F32);
  EXPECT_EQ(find(delta, DtBias).published, DType::BF16);
  EXPECT_FALSE(has(delta, QProj));
  EXPECT_FALSE(has(attention, QkvProj));
  EXPECT_FALSE(has(attention, RouterBias));

  const ModelContract dense = test::golden_contract("qwen3-0.6b.json");
  EXPECT_EQ(find(dense.layers[0].trunk, QProj).shapes, (Shapes{{2048, 1024}}));
  EXPECT_EQ(find(dense.layers[0].trunk, MlpDown).shapes, (Shapes{{1024, 3072}}));
  EXPECT_FALSE(has(dense.layers[0].trunk, Router));
}

TEST(Contract, ListsTheTwoTensorsOfFusedExperts) {
  const ModelContract qwen = test::golden_contract("qwen3.5-122b-a10b.json");
  EXPECT_EQ(expert_set_count(*qwen.layers[47].experts), 1u);
  const std::vector<ExpertTensorSpec> tensors = expert_tensors(qwen, 47, 0);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "model.language_model.layers.47.mlp.experts.gate_up_proj");
  EXPECT_EQ(tensors[0].shape, (std::vector<uint64_t>{256, 2048, 3072}));
  EXPECT_EQ(tensors[1].name, "model.language_model.layers.47.mlp.experts.down_proj");
  EXPECT_EQ(tensors[1].shape, (std::vector<uint64_t>{256, 3072, 1024}));
}

}  // namespace
}  // namespace deltafin::checkpoint
