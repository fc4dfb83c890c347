// Surveys of the layouts in which the Qwen family is published: fused experts, experts one by one,
// dense models with and without an output head, one file without index.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "checkpoint/survey.h"
#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

using test::json;
using test::MiniCheckpoint;
using test::MiniTensor;
using testing::HasSubstr;

constexpr const char* kFusedExperts = "model.language_model.layers.0.mlp.experts.";
constexpr const char* kHead = "lm_head.weight";

void shrink(json& text) {
  text["hidden_size"] = 16;
  text["vocab_size"] = 32;
  text["num_hidden_layers"] = 2;
  text["num_attention_heads"] = 4;
  text["num_key_value_heads"] = 2;
  text["head_dim"] = 8;
  for (const char* token : {"bos_token_id", "eos_token_id"})
    if (text.contains(token)) text[token] = 1;
  if (!text.contains("num_experts")) return;
  text["num_experts"] = 4;
  text["num_experts_per_tok"] = 2;
  text["moe_intermediate_size"] = 12;
}

json fused_config() {
  json config = test::golden_config("qwen3.5-35b-a3b.json");
  json& text = config["text_config"];
  shrink(text);
  text["layer_types"] = {"linear_attention", "full_attention"};
  text["linear_num_key_heads"] = 2;
  text["linear_num_value_heads"] = 4;
  text["linear_key_head_dim"] = 4;
  text["linear_value_head_dim"] = 6;
  text["shared_expert_intermediate_size"] = 10;
  return config;
}

MiniCheckpoint fused() {
  return {fused_config(),
          {{"model.visual.patch_embed.proj.weight", "BF16", {4, 4}},
           {"mtp.layers.0.mlp.experts.0.gate_proj.weight", "BF16", {2, 2}},
           {"mtp.norm.weight", "BF16", {2}}}};
}

MiniCheckpoint fused_flat() {
  json config = fused_config()["text_config"];
  config["architectures"] = {"Qwen3_5MoeForCausalLM"};
  return {config, {}};
}

MiniCheckpoint one_by_one() {
  json config = test::golden_config("qwen3-30b-a3b.json");
  shrink(config);
  return {config, {}};
}

MiniCheckpoint dense() {
  json config = test::golden_config("qwen3-0.6b.json");
  shrink(config);
  config["intermediate_size"] = 24;
  return {config, {}};
}

MiniCheckpoint without_head(MiniCheckpoint checkpoint) {
  checkpoint.shards[MiniCheckpoint::kRest].drop(kHead);
  checkpoint.index = MiniCheckpoint::index_of(checkpoint.shards);
  return checkpoint;
}

MiniCheckpoint untied(MiniCheckpoint checkpoint) {
  checkpoint.config["tie_word_embeddings"] = false;
  return checkpoint;
}

MiniCheckpoint in_one_file(MiniCheckpoint checkpoint) {
  checkpoint.merge_into("model.safetensors");
  return checkpoint;
}

std::string problems_of(const Survey& survey) {
  std::string lines;
  for (const Problem& problem : survey.problems().kept()) lines += to_line(problem) + "\n";
  return lines;
}

Checkpoint opened(const io::Storage& storage) {
  Result<Checkpoint> checkpoint = Checkpoint::open(storage, MiniCheckpoint::kFolder);
  EXPECT_TRUE(checkpoint.has_value()) << checkpoint.error().what;
  return std::move(*checkpoint);
}

struct Layout {
  const char* name;
  std::function<MiniCheckpoint()> make;
};

void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }

class QwenLayouts : public testing::TestWithParam<Layout> {};

TEST_P(QwenLayouts, AreWhole) {
  const MiniCheckpoint checkpoint = GetParam().make();
  const Survey survey = survey_of(checkpoint);
  EXPECT_EQ(problems_of(survey), "");
  EXPECT_TRUE(survey.is_usable());
  EXPECT_TRUE(survey.globals().is_complete());
  ASSERT_EQ(survey.layers().size(), 2u);
  for (const Completeness& layer : survey.layers()) EXPECT_TRUE(layer.is_complete());
}

const Layout kLayouts[] = {
    {"Fused", fused},
    {"FusedFlat", fused_flat},
    {"FusedInOneFile", [] { return in_one_file(fused()); }},
    {"OneByOne", one_by_one},
    {"DenseWithASecondHead", dense},
    {"DenseTied", [] { return without_head(dense()); }},
    {"DenseUntied", [] { return untied(dense()); }},
    {"DenseTiedInOneFile", [] { return in_one_file(without_head(dense())); }},
    {"DenseInOneFile", [] { return in_one_file(dense()); }},
    {"DecayInF32",
     [] {
       MiniCheckpoint checkpoint = fused();
       checkpoint.shards[MiniCheckpoint::kLayer0]
           .find("model.language_model.layers.0.linear_attn.A_log")
           .dtype = "F32";
       return checkpoint;
     }},
};

INSTANTIATE_TEST_SUITE_P(Survey, QwenLayouts, testing::ValuesIn(kLayouts),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(QwenSurvey, CountsWhatQwen35IgnoresByThePrefixItIgnores) {
  const Survey survey = survey_of(fused());
  ASSERT_EQ(survey.ignored().size(), 2u);
  EXPECT_EQ(survey.ignored()[0].pattern, "model.visual.*");
  EXPECT_EQ(survey.ignored()[0].count, 1u);
  EXPECT_EQ(survey.ignored()[1].pattern, "mtp.*");
  EXPECT_EQ(survey.ignored()[1].count, 2u);
  EXPECT_EQ(survey.ignored()[1].bytes, 12u);
}

TEST(QwenSurvey, DoesWithoutTheShardsOfPredictionLayersAndVisionTower) {
  MiniCheckpoint checkpoint = fused();
  checkpoint.shards.erase(MiniCheckpoint::kVision);
  EXPECT_TRUE(survey_of(checkpoint).is_usable());
}

TEST(QwenSurvey, CountsTheBytesOfAHeadThatNeedNotBeThere) {
  const uint64_t head_bytes = 32 * 16 * 2;
  const Survey with = survey_of(dense());
  const Survey without = survey_of(without_head(dense()));
  EXPECT_EQ(with.found_bytes(), without.found_bytes() + head_bytes);
  EXPECT_EQ(with.globals().expected, 2u);
  EXPECT_EQ(with.globals().found, 2u);
}

TEST(QwenSurvey, LeavesTheHeadOfATiedModelWithoutBytes) {
  io::SimulatedStorage storage;
  without_head(dense()).write(storage);
  const Checkpoint checkpoint = opened(storage);
  ASSERT_EQ(checkpoint.contract().globals.back().role, TensorRole::LmHead);
  EXPECT_EQ(checkpoint.globals().back().size, 0u);
  EXPECT_GT(checkpoint.globals().front().size, 0u);
}

// Gate and up of an expert lie one behind the other, experts follow each other, and so do the
// experts' down matrices in a tensor of their own.
TEST(QwenSurvey, FindsEachExpertWithinItsStack) {
  io::SimulatedStorage storage;
  fused().write(storage);
  const Checkpoint checkpoint = opened(storage);
  const uint64_t matrix_bytes = 12 * 16 * 2;
  const auto part = [&](uint32_t expert, ExpertPart name) {
    return checkpoint.expert(1, expert)[static_cast<size_t>(name)];
  };
  const TensorLocation gates = part(0, ExpertPart::W1);
  const TensorLocation downs = part(0, ExpertPart::W2);
  for (uint32_t expert = 0; expert < 4; ++expert) {
    const TensorLocation gate = part(expert, ExpertPart::W1);
    const TensorLocation up = part(expert, ExpertPart::W3);
    const TensorLocation down = part(expert, ExpertPart::W2);
    EXPECT_EQ(gate.offset, gates.offset + expert * 2 * matrix_bytes);
    EXPECT_EQ(up.offset, gate.offset + matrix_bytes);
    EXPECT_EQ(down.offset, downs.offset + expert * matrix_bytes);
    for (const TensorLocation& location : {gate, up, down}) {
      EXPECT_EQ(location.size, matrix_bytes);
      EXPECT_EQ(location.file, gates.file);
      EXPECT_EQ(location.dtype, DType::BF16);
    }
    EXPECT_EQ(part(expert, ExpertPart::W1Scale).size, 0u);
  }
  const bool apart = gates.offset + 8 * matrix_bytes == downs.offset ||
                     downs.offset + 4 * matrix_bytes == gates.offset;
  EXPECT_TRUE(apart);
}

// Every way in which these layouts can be wrong, and what must be said about it.
struct QwenDamage {
  const char* name;
  std::function<MiniCheckpoint()> make;
  ProblemKind kind;
  std::vector<std::string> said;
};

void PrintTo(const QwenDamage& damage, std::ostream* out) { *out << damage.name; }

class QwenDamages : public testing::TestWithParam<QwenDamage> {};

TEST_P(QwenDamages, AreErrorsThatNameTheTensor) {
  const QwenDamage& damage = GetParam();
  const Survey survey = survey_of(damage.make());
  EXPECT_FALSE(survey.is_usable());
  EXPECT_GE(survey.problems().count_of(damage.kind), 1u);
  const std::string all = problems_of(survey);
  for (const std::string& text : damage.said) EXPECT_THAT(all, HasSubstr(text));
}

// `checkpoint` after `change` to its first layer's shard, with an index that knows of it.
MiniCheckpoint changed(MiniCheckpoint checkpoint,
                       const std::function<void(test::MiniShard&)>& change) {
  change(checkpoint.shards[MiniCheckpoint::kLayer0]);
  checkpoint.index = MiniCheckpoint::index_of(checkpoint.shards);
  return checkpoint;
}

MiniTensor& find_in_rest(MiniCheckpoint& checkpoint, const char* name) {
  return checkpoint.shards[MiniCheckpoint::kRest].find(name);
}

const std::string kGateUp = std::string(kFusedExperts) + "gate_up_proj";
const std::string kDown = std::string(kFusedExperts) + "down_proj";

const QwenDamage kQwenDamages[] = {
    {"NoGateUp",
     [] { return changed(fused(), [](auto& shard) { shard.drop(kGateUp); }); },
     ProblemKind::MissingTensor,
     {"tensor " + kGateUp + ": no shard holds it, but layer 0 needs it by config.json"}},
    {"NoStacks",
     [] {
       return changed(fused(), [](auto& shard) {
         shard.drop(kGateUp);
         shard.drop(kDown);
       });
     },
     ProblemKind::MissingTensor,
     {"layer 0 lacks 2 tensors, which no shard holds: " + kGateUp + ", " + kDown}},
    {"FewExpertsInTheStack",
     [] { return changed(fused(), [](auto& shard) { shard.find(kGateUp).shape[0] = 3; }); },
     ProblemKind::WrongTensor,
     {"tensor " + kGateUp + ": shape is [3, 24, 16], expected [4, 24, 16] by config.json"}},
    {"TransposedStack",
     [] { return changed(fused(), [](auto& shard) { shard.find(kDown).shape = {4, 12, 16}; }); },
     ProblemKind::WrongTensor,
     {"tensor " + kDown + ": shape is [4, 12, 16], expected [4, 16, 12] by config.json"}},
    {"FlatStack",
     [] { return changed(fused(), [](auto& shard) { shard.find(kDown).shape = {64, 12}; }); },
     ProblemKind::WrongTensor,
     {"shape is [64, 12], expected [4, 16, 12] by config.json"}},
    {"StackOfFp8",
     [] { return changed(fused(), [](auto& shard) { shard.find(kDown).dtype = "F8_E4M3"; }); },
     ProblemKind::WrongTensor,
     {"tensor " + kDown + ": dtype is F8_E4M3, expected BF16 or F32"}},
    {"ScalesOfFp8",
     [] {
       return changed(fused(), [](auto& shard) {
         shard.tensors.push_back({kDown + "_scale_inv", "F32", {4, 1, 1}});
       });
     },
     ProblemKind::UnexpectedTensor,
     {"tensor " + kDown + "_scale_inv: config.json describes a model without this tensor"}},
    {"ExpertsOneByOneUnderAFusedConfig",
     [] {
       return changed(fused(), [](auto& shard) {
         shard.drop(kGateUp);
         shard.drop(kDown);
         for (int i = 0; i < 4; ++i)
           for (const char* name : {"gate_proj", "up_proj", "down_proj"})
             shard.tensors.push_back(
                 {fmt::format("{}{}.{}.weight", kFusedExperts, i, name), "BF16", {12, 16}});
       });
     },
     ProblemKind::UnexpectedTensor,
     {"mlp.experts.0.gate_proj.weight: config.json describes a model without this tensor",
      "layer 0 lacks 2 tensors"}},
    {"FusedExpertsUnderAConfigOfSingleOnes",
     [] {
       return changed(one_by_one(), [](auto& shard) {
         shard.tensors.push_back({"model.layers.0.mlp.experts.gate_up_proj", "BF16", {4, 24, 16}});
       });
     },
     ProblemKind::UnexpectedTensor,
     {"model.layers.0.mlp.experts.gate_up_proj: config.json describes a model without"}},
    {"PartOfASingleExpert",
     [] {
       return changed(one_by_one(), [](auto& shard) {
         shard.drop("model.layers.0.mlp.experts.2.up_proj.weight");
       });
     },
     ProblemKind::MissingTensor,
     {"tensor model.layers.0.mlp.experts.2.up_proj.weight: no shard holds it"}},
    {"FusedProjectionsOfQwen3Next",
     [] {
       return changed(fused(), [](auto& shard) {
         const std::string prefix = "model.language_model.layers.0.linear_attn.";
         shard.drop(prefix + "in_proj_qkv.weight");
         shard.drop(prefix + "in_proj_z.weight");
         shard.tensors.push_back({prefix + "in_proj_qkvz.weight", "BF16", {64, 16}});
       });
     },
     ProblemKind::UnexpectedTensor,
     {"linear_attn.in_proj_qkvz.weight: config.json describes a model without this tensor",
      "layer 0 lacks 2 tensors"}},
    {"NoHeadInAnUntiedModel",
     [] { return untied(without_head(dense())); },
     ProblemKind::MissingTensor,
     {"tensor lm_head.weight: no shard holds it, but the model needs it by config.json"}},
    {"HeadOfAnotherShapeInATiedModel",
     [] {
       MiniCheckpoint checkpoint = dense();
       find_in_rest(checkpoint, kHead).shape = {31, 16};
       return checkpoint;
     },
     ProblemKind::WrongTensor,
     {"tensor lm_head.weight: shape is [31, 16], expected [32, 16] by config.json"}},
    {"HeadOfATiedModelThatTheIndexPromises",
     [] {
       MiniCheckpoint checkpoint = dense();
       checkpoint.shards[MiniCheckpoint::kRest].drop(kHead);
       return checkpoint;
     },
     ProblemKind::IndexMismatch,
     {"tensor lm_head.weight: the index puts it into this shard, but the shard does not hold it"}},
    {"PredictionLayersInAModelWithoutThem",
     [] {
       return changed(dense(), [](auto& shard) {
         shard.tensors.push_back({"mtp.norm.weight", "BF16", {16}});
       });
     },
     ProblemKind::UnexpectedTensor,
     {"tensor mtp.norm.weight: config.json describes a model without this tensor"}},
};

INSTANTIATE_TEST_SUITE_P(Survey, QwenDamages, testing::ValuesIn(kQwenDamages),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace deltafin::checkpoint
