#include "checkpoint/qwen_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

using test::edited;
using test::json;
using test::message;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json qwen35() { return test::golden_config("qwen3.5-122b-a10b.json"); }
json qwen3_moe() { return test::golden_config("qwen3-30b-a3b.json"); }
json qwen3() { return test::golden_config("qwen3-0.6b.json"); }

// The text-only export of Qwen3.5.
json qwen35_flat() {
  json config = qwen35()["text_config"];
  config["architectures"] = {"Qwen3_5MoeForCausalLM"};
  config["tie_word_embeddings"] = false;
  return config;
}

ModelContract parsed(const json& config) {
  const Result<ModelContract> contract = parse_config(config.dump());
  EXPECT_TRUE(contract.has_value()) << contract.error().what;
  return *contract;
}

TEST(QwenConfig, ReadsQwen35) {
  const ModelContract contract = parsed(qwen35());
  EXPECT_EQ(contract.architecture, "Qwen3_5MoeForConditionalGeneration");
  EXPECT_EQ(contract.names.scope, "");
  EXPECT_EQ(contract.names.body, "model.language_model.");
  EXPECT_EQ(contract.names.head, "lm_head.weight");
  EXPECT_THAT(contract.names.ignored, ElementsAre("mtp.", "model.visual."));
  EXPECT_EQ(contract.max_positions, 262144u);
  EXPECT_EQ(contract.bos_token_id, std::nullopt);
  EXPECT_EQ(contract.eos_token_id, 248044);

  ASSERT_NE(contract.qwen(), nullptr);
  const QwenConfig& qwen = *contract.qwen();
  EXPECT_EQ(qwen.hidden_size, 3072u);
  EXPECT_EQ(qwen.vocab_size, 248320u);
  EXPECT_EQ(qwen.rms_norm_eps, 1e-6f);
  EXPECT_TRUE(qwen.zero_centred_norms);
  EXPECT_EQ(qwen.delta_key_head_count, 16u);
  EXPECT_EQ(qwen.delta_value_head_count, 64u);
  EXPECT_EQ(qwen.delta_key_head_dim, 128u);
  EXPECT_EQ(qwen.delta_value_head_dim, 128u);
  EXPECT_EQ(qwen.conv_taps, 4u);
  EXPECT_EQ(qwen.head_count, 32u);
  EXPECT_EQ(qwen.kv_head_count, 2u);
  EXPECT_EQ(qwen.head_dim, 256u);
  EXPECT_EQ(qwen.rotary_dim, 64u);
  EXPECT_EQ(qwen.rope_theta, 1e7);
  EXPECT_TRUE(qwen.attention_gate);
  EXPECT_EQ(qwen.dense_intermediate_size, 0u);
  EXPECT_EQ(qwen.moe_intermediate_size, 1024u);
  EXPECT_EQ(qwen.expert_count, 256u);
  EXPECT_EQ(qwen.experts_per_token, 8u);
  EXPECT_TRUE(qwen.router_renormalize);
  EXPECT_EQ(qwen.shared_intermediate_size, 1024u);
  EXPECT_FALSE(qwen.tied_embeddings);
}

TEST(QwenConfig, PlacesFullAttentionInEveryFourthLayerOfQwen35) {
  for (const bool spelt_out : {true, false}) {
    json config = qwen35();
    if (!spelt_out) config["text_config"].erase("layer_types");
    const ModelContract contract = parsed(config);
    ASSERT_EQ(contract.layers.size(), 48u);
    for (uint32_t i = 0; i < 48; ++i) {
      EXPECT_EQ(contract.layers[i].mixer,
                i % 4 == 3 ? MixerKind::GroupedQuery : MixerKind::GatedDeltaNet)
          << i;
      EXPECT_EQ(contract.layers[i].ffn, FfnKind::Moe) << i;
      ASSERT_TRUE(contract.layers[i].experts.has_value());
      EXPECT_EQ(contract.layers[i].experts->naming, ExpertNaming::QwenFused);
      EXPECT_EQ(contract.layers[i].experts->format, ExpertFormat::Plain);
      EXPECT_EQ(contract.layers[i].experts->input_dim, 3072u);
      EXPECT_EQ(contract.layers[i].experts->inner_dim, 1024u);
    }
  }
}

TEST(QwenConfig, TakesTheKindsOfLayersFromTheirListBeforeTheInterval) {
  json config = qwen35();
  config["text_config"]["layer_types"][0] = "full_attention";
  EXPECT_EQ(parsed(config).layers[0].mixer, MixerKind::GroupedQuery);
}

TEST(QwenConfig, ReadsTheTextOnlyExportOfQwen35) {
  const ModelContract flat = parsed(qwen35_flat());
  const ModelContract nested = parsed(qwen35());
  EXPECT_EQ(flat.names.body, "model.");
  EXPECT_EQ(flat.names.head, "lm_head.weight");
  EXPECT_THAT(flat.unknown_fields, IsEmpty());
  EXPECT_EQ(flat.qwen()->rotary_dim, 64u);
  EXPECT_EQ(tensor_count(flat), tensor_count(nested));
  EXPECT_EQ(parameter_count(flat), parameter_count(nested));
  EXPECT_EQ(flat.layers[0].trunk[1].name, "model.layers.0.linear_attn.in_proj_qkv.weight");
}

TEST(QwenConfig, ReadsQwen3Moe) {
  const ModelContract contract = parsed(qwen3_moe());
  EXPECT_THAT(contract.names.ignored, IsEmpty());
  EXPECT_EQ(contract.bos_token_id, 151643);
  EXPECT_EQ(contract.eos_token_id, 151645);
  const QwenConfig& qwen = *contract.qwen();
  EXPECT_FALSE(qwen.zero_centred_norms);
  EXPECT_FALSE(qwen.attention_gate);
  EXPECT_EQ(qwen.head_count, 32u);
  EXPECT_EQ(qwen.kv_head_count, 4u);
  EXPECT_EQ(qwen.rotary_dim, 128u);
  EXPECT_EQ(qwen.rope_theta, 1e6);
  EXPECT_EQ(qwen.dense_intermediate_size, 0u);  // published, but no layer is dense
  EXPECT_EQ(qwen.moe_intermediate_size, 768u);
  EXPECT_EQ(qwen.expert_count, 128u);
  EXPECT_TRUE(qwen.router_renormalize);
  EXPECT_EQ(qwen.shared_intermediate_size, 0u);
  EXPECT_FALSE(qwen.tied_embeddings);
  ASSERT_EQ(contract.layers.size(), 48u);
  EXPECT_EQ(contract.layers[47].mixer, MixerKind::GroupedQuery);
  EXPECT_EQ(contract.layers[47].experts->naming, ExpertNaming::Qwen);
}

TEST(QwenConfig, ReadsDenseQwen3) {
  const ModelContract contract = parsed(qwen3());
  const QwenConfig& qwen = *contract.qwen();
  EXPECT_EQ(qwen.hidden_size, 1024u);
  EXPECT_EQ(qwen.dense_intermediate_size, 3072u);
  EXPECT_EQ(qwen.expert_count, 0u);
  EXPECT_EQ(qwen.experts_per_token, 0u);
  EXPECT_TRUE(qwen.tied_embeddings);
  ASSERT_EQ(contract.layers.size(), 28u);
  EXPECT_EQ(contract.layers[27].ffn, FfnKind::Dense);
  EXPECT_FALSE(contract.layers[27].experts.has_value());
}

TEST(QwenConfig, KnowsEveryFieldOfThePublishedConfigs) {
  for (const char* const name :
       {"qwen3-0.6b.json", "qwen3-1.7b.json", "qwen3-30b-a3b.json", "qwen3.5-35b-a3b.json",
        "qwen3.5-122b-a10b.json", "qwen3.5-397b-a17b.json"}) {
    EXPECT_THAT(test::golden_contract(name).unknown_fields, IsEmpty()) << name;
  }
}

TEST(QwenConfig, ReportsUnknownFieldsWithoutRefusing) {
  json config = qwen35();
  config["novel"] = 1;
  config["text_config"]["novel"] = 2;
  config["text_config"]["rope_parameters"]["novel"] = 3;
  EXPECT_THAT(parsed(config).unknown_fields,
              ElementsAre("text_config.rope_parameters.novel", "text_config.novel", "novel"));
}

TEST(QwenConfig, MakesTheHeadOfATiedModelOptional) {
  const auto head_of = [](const ModelContract& contract) {
    EXPECT_EQ(contract.globals.back().role, TensorRole::LmHead);
    return contract.globals.back();
  };
  EXPECT_TRUE(head_of(parsed(qwen3())).optional);
  EXPECT_FALSE(head_of(parsed(edited(qwen3(), "/tie_word_embeddings", "false"))).optional);
  EXPECT_FALSE(head_of(parsed(edited(qwen3(), "/tie_word_embeddings", nullptr))).optional);
  EXPECT_FALSE(head_of(parsed(qwen35())).optional);
  EXPECT_TRUE(head_of(parsed(edited(qwen35(), "/tie_word_embeddings", "true"))).optional);
  json inside = edited(qwen35(), "/tie_word_embeddings", nullptr);
  inside["text_config"]["tie_word_embeddings"] = true;
  EXPECT_TRUE(head_of(parsed(inside)).optional);
}

TEST(QwenConfig, GivesExpertsToTheLayersThatThePublishedCodeDoes) {
  json config = qwen3_moe();
  config["decoder_sparse_step"] = 2;
  config["mlp_only_layers"] = {1, 2, 47};
  const ModelContract contract = parsed(config);
  EXPECT_EQ(contract.qwen()->dense_intermediate_size, 6144u);
  for (uint32_t i = 0; i < 48; ++i) {
    const bool has_experts = i % 2 == 1 && i != 1 && i != 47;
    EXPECT_EQ(contract.layers[i].ffn, has_experts ? FfnKind::Moe : FfnKind::Dense) << i;
    EXPECT_EQ(contract.layers[i].experts.has_value(), has_experts) << i;
  }
}

TEST(QwenConfig, DoesNotRenormaliseARouterThatIsNotToldTo) {
  EXPECT_FALSE(parsed(edited(qwen3_moe(), "/norm_topk_prob", "false")).qwen()->router_renormalize);
  EXPECT_FALSE(parsed(edited(qwen3_moe(), "/norm_topk_prob", nullptr)).qwen()->router_renormalize);
}

TEST(QwenConfig, ReadsTheRotationFromEitherPlace) {
  json moved = qwen3();
  moved.erase("rope_theta");
  moved["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5000000}};
  EXPECT_EQ(parsed(moved).qwen()->rope_theta, 5e6);
  EXPECT_EQ(parsed(moved).qwen()->rotary_dim, 128u);

  json outside = qwen35();
  json& text = outside["text_config"];
  text["rope_theta"] = 12345678.5;  // no f32
  text["partial_rotary_factor"] = 0.5;
  text.erase("rope_parameters");
  EXPECT_EQ(parsed(outside).qwen()->rope_theta, 12345678.5);
  EXPECT_EQ(parsed(outside).qwen()->rotary_dim, 128u);

  json older = qwen35();
  older["text_config"]["rope_scaling"] = older["text_config"]["rope_parameters"];
  older["text_config"].erase("rope_parameters");
  EXPECT_EQ(parsed(older).qwen()->rope_theta, 1e7);
}

TEST(QwenConfig, RoundsTheRotatedPartOfAHeadDown) {
  // 66.99 of 256
  const char* const factor = "/text_config/rope_parameters/partial_rotary_factor";
  EXPECT_EQ(parsed(edited(qwen35(), factor, "0.2617")).qwen()->rotary_dim, 66u);
}

TEST(QwenConfig, AcceptsVariantsThatTheMathematicsCovers) {
  const std::pair<const char*, const char*> variants[] = {
      {"/text_config/full_attention_interval", nullptr},
      {"/text_config/mlp_only_layers", nullptr},
      {"/text_config/decoder_sparse_step", "1"},
      {"/text_config/norm_topk_prob", "true"},
      {"/text_config/mamba_ssm_dtype", nullptr},
      {"/text_config/attn_output_gate", nullptr},
      {"/text_config/rope_parameters/rope_type", nullptr},
      {"/text_config/rope_parameters/type", "\"default\""},
      {"/text_config/rope_parameters/mrope_section", nullptr},
      {"/text_config/rope_theta", "10000000.0"},
      {"/text_config/linear_conv_kernel_dim", "2"},
      {"/text_config/tie_word_embeddings", "false"},
      {"/vision_config", nullptr},
      {"/quantization_config", "null"},
  };
  for (const auto& [field, value] : variants) {
    EXPECT_EQ(message(edited(qwen35(), field, value)), "accepted") << field;
  }
  const std::pair<const char*, const char*> flat_variants[] = {
      {"/sliding_window", "4096"},  // use_sliding_window is false
      {"/use_sliding_window", nullptr},
      {"/partial_rotary_factor", "1"},
      {"/rope_scaling", R"({"rope_type":"default"})"},
      {"/intermediate_size", nullptr},
      {"/layer_types", "null"},
  };
  for (const auto& [field, value] : flat_variants) {
    EXPECT_EQ(message(edited(qwen3_moe(), field, value)), "accepted") << field;
  }
}

TEST(QwenConfig, RefusesRelativesWithTheirReason) {
  const std::pair<const char*, const char*> relatives[] = {
      {R"(["Qwen3NextForCausalLM"])",
       "architectures: found [\"Qwen3NextForCausalLM\"], expected another model: the fused "
       "projections in_proj_qkvz and in_proj_ba of Qwen3-Next are not supported"},
      {R"(["Qwen3_5ForConditionalGeneration"])", "the dense Qwen3.5 models are not supported"},
      {R"(["Qwen3_5ForCausalLM"])", "the dense Qwen3.5 models are not supported"},
      {R"(["Qwen2ForCausalLM"])", "the biases of Qwen2's query, key and value projections"},
      {R"(["Qwen2MoeForCausalLM"])", "the biases of Qwen2's query, key and value projections"},
      {R"(["Qwen3VLForConditionalGeneration"])", "the vision-language models of Qwen3"},
      {R"(["Qwen3VLMoeForConditionalGeneration"])", "the vision-language models of Qwen3"},
      {R"(["Qwen3OmniMoeForConditionalGeneration"])", "the omni models of Qwen3"},
      {R"(["Qwen3ForSequenceClassification"])", "a classification head is not supported"},
      {R"(["Qwen4ForCausalLM"])", "expected one of the supported: \"KimiK3"},
  };
  for (const auto& [architectures, expected] : relatives) {
    EXPECT_THAT(message(edited(qwen3(), "/architectures", architectures)), HasSubstr(expected));
  }
}

// One edit of a config, and what must be said about it.
struct QwenRefusal {
  const char* name;
  const char* field;  // pointer into the config
  const char* value;  // JSON; null means: erase the field
  const char* message;
};

void PrintTo(const QwenRefusal& refusal, std::ostream* out) { *out << refusal.name; }

class Qwen35Refusals : public testing::TestWithParam<QwenRefusal> {};

TEST_P(Qwen35Refusals, NameFieldFoundAndExpected) {
  const QwenRefusal& refusal = GetParam();
  EXPECT_THAT(message(edited(qwen35(), refusal.field, refusal.value)), HasSubstr(refusal.message));
}

constexpr QwenRefusal kQwen35Refusals[] = {
    {"OtherModelType", "/model_type", "\"qwen3_next\"",
     "model_type: found \"qwen3_next\", expected \"qwen3_5_moe\""},
    {"NoTextConfig", "/text_config", nullptr, "text_config: found nothing, expected an object"},
    {"OtherTextModelType", "/text_config/model_type", "\"qwen3_5_text\"",
     "text_config.model_type: found \"qwen3_5_text\", expected \"qwen3_5_moe_text\""},
    // Quantised derivatives
    {"Fp8", "/quantization_config",
     R"({"quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,128]})",
     "quantization_config.quant_method: found \"fp8\", expected a BF16 checkpoint"},
    {"Gptq", "/quantization_config", R"({"quant_method":"gptq","bits":4})", "found \"gptq\""},
    {"Nvfp4", "/quantization_config", R"({"quant_method":"modelopt","quant_algo":"NVFP4"})",
     "found \"modelopt\", expected a BF16 checkpoint without it: quantised derivatives of Qwen "
     "(FP8, GPTQ, AWQ, NVFP4, compressed-tensors) are not supported"},
    {"CompressedTensors", "/text_config/quantization_config",
     R"({"quant_method":"compressed-tensors"})",
     "text_config.quantization_config.quant_method: found \"compressed-tensors\""},
    {"CompressionConfig", "/compression_config", R"({"quant_method":"compressed-tensors"})",
     "compression_config.quant_method: found \"compressed-tensors\""},
    {"QuantisedWithoutMethod", "/quantization_config", "{}",
     "quantization_config.quant_method: found nothing, expected a BF16 checkpoint"},
    {"QuantisationIsNoObject", "/quantization_config", "\"fp8\"",
     "quantization_config: found \"fp8\", expected an object"},
    // Values we do not compute
    {"OtherActivation", "/text_config/hidden_act", "\"gelu\"",
     "text_config.hidden_act: found \"gelu\", expected \"silu\""},
    {"NoActivation", "/text_config/hidden_act", nullptr, "text_config.hidden_act: found nothing"},
    {"AttentionBias", "/text_config/attention_bias", "true",
     "text_config.attention_bias: found true, expected false (no projection of this family"},
    {"SlidingWindow", "/text_config/use_sliding_window", "true",
     "text_config.use_sliding_window: found true, expected false (attention reads every position"},
    {"NoGate", "/text_config/attn_output_gate", "false",
     "text_config.attn_output_gate: found false, expected true"},
    {"NotRenormalised", "/text_config/norm_topk_prob", "false",
     "text_config.norm_topk_prob: found false, expected true"},
    {"DenseLayers", "/text_config/mlp_only_layers", "[0]",
     "text_config.mlp_only_layers: found [0], expected []"},
    {"SparseStep", "/text_config/decoder_sparse_step", "2",
     "text_config.decoder_sparse_step: found 2, expected 1"},
    {"Bf16State", "/text_config/mamba_ssm_dtype", "\"bfloat16\"",
     "text_config.mamba_ssm_dtype: found \"bfloat16\", expected \"float32\""},
    {"LogitCap", "/text_config/final_logit_softcapping", "30.0", "found 30.0, expected null"},
    {"TiedDiffers", "/text_config/tie_word_embeddings", "true",
     "text_config.tie_word_embeddings: found true, expected false, as in the root object"},
    {"TiedIsNoFlag", "/tie_word_embeddings", "1", "tie_word_embeddings: found 1, expected true or"},
    // Rotation
    {"Yarn", "/text_config/rope_parameters/rope_type", "\"yarn\"",
     "text_config.rope_parameters.rope_type: found \"yarn\", expected \"default\" (scaled "
     "rotations "
     "(yarn, linear, dynamic, longrope) are not supported)"},
    {"Linear", "/text_config/rope_parameters/rope_type", "\"linear\"", "found \"linear\""},
    {"OldYarn", "/text_config/rope_parameters/type", "\"yarn\"",
     "text_config.rope_parameters.type: found \"yarn\""},
    {"TwoRotations", "/text_config/rope_scaling", R"({"rope_type":"default"})",
     "text_config.rope_scaling: found {\"rope_type\":\"default\"}, expected null, as "
     "rope_parameters exists too"},
    {"RotationIsNoObject", "/text_config/rope_parameters", "1e7",
     "text_config.rope_parameters: found 10000000.0, expected an object"},
    {"NoTheta", "/text_config/rope_parameters/rope_theta", nullptr,
     "text_config.rope_parameters.rope_theta: found nothing, expected a number from 1 to"},
    {"ThetaDiffers", "/text_config/rope_theta", "10000",
     "text_config.rope_parameters.rope_theta: found 10000000, expected 10000, as in "
     "text_config.rope_theta"},
    {"ThetaZero", "/text_config/rope_parameters/rope_theta", "0",
     "rope_theta: found 0, expected a number from 1 to"},
    {"NoFactor", "/text_config/rope_parameters/partial_rotary_factor", nullptr,
     "text_config.rope_parameters.partial_rotary_factor: found nothing"},
    {"FactorAboveOne", "/text_config/rope_parameters/partial_rotary_factor", "1.5",
     "partial_rotary_factor: found 1.5, expected a number from 0 to 1"},
    {"NothingRotated", "/text_config/rope_parameters/partial_rotary_factor", "0.001",
     "partial_rotary_factor: found 0.001, expected an even number of rotated dimensions of a head, "
     "not 0"},
    {"OddRotated", "/text_config/rope_parameters/partial_rotary_factor", "0.254",
     "expected an even number of rotated dimensions of a head, not 65"},
    // Layers
    {"OtherLayerType", "/text_config/layer_types/5", "\"sliding_attention\"",
     "text_config.layer_types: found \"sliding_attention\", expected \"linear_attention\" or "
     "\"full_attention\""},
    {"LayerTypeIsNoWord", "/text_config/layer_types/5", "4", "text_config.layer_types: found 4"},
    {"FewLayerTypes", "/text_config/layer_types", R"(["full_attention"])",
     "text_config.layer_types: found [\"full_attention\"], expected a list of 48 kinds"},
    {"LayerTypesAreNoList", "/text_config/layer_types", "\"full_attention\"",
     "expected a list of 48 kinds"},
    {"IntervalZero", "/text_config/full_attention_interval", "0",
     "text_config.full_attention_interval: found 0"},
    {"NoLayers", "/text_config/num_hidden_layers", "0", "text_config.num_hidden_layers: found 0"},
    {"TooManyLayers", "/text_config/num_hidden_layers", "4097", "an integer from 1 to 4096"},
    // Sizes
    {"NoHiddenSize", "/text_config/hidden_size", nullptr,
     "text_config.hidden_size: found nothing, expected an integer from 1 to 16777216"},
    {"HiddenSizeFloat", "/text_config/hidden_size", "3072.0", "found 3072.0, expected an integer"},
    {"HiddenSizeHuge", "/text_config/hidden_size", "16777217", "found 16777217"},
    {"VocabularyHuge", "/text_config/vocab_size", "99999999", "text_config.vocab_size"},
    {"NoHeadDim", "/text_config/head_dim", nullptr, "text_config.head_dim: found nothing"},
    {"NoHeads", "/text_config/num_attention_heads", "0",
     "text_config.num_attention_heads: found 0"},
    {"NoKvHeads", "/text_config/num_key_value_heads", "0", "text_config.num_key_value_heads"},
    {"NoExperts", "/text_config/num_experts", "0", "text_config.num_experts: found 0"},
    {"TooManyExperts", "/text_config/num_experts", "65537", "text_config.num_experts: found 65537"},
    {"NoSharedExpert", "/text_config/shared_expert_intermediate_size", nullptr,
     "text_config.shared_expert_intermediate_size: found nothing"},
    {"NoExpertSize", "/text_config/moe_intermediate_size", nullptr,
     "text_config.moe_intermediate_size: found nothing"},
    {"NoKeyHeads", "/text_config/linear_num_key_heads", "0", "text_config.linear_num_key_heads"},
    {"NoKeyDim", "/text_config/linear_key_head_dim", nullptr, "text_config.linear_key_head_dim"},
    {"NoValueDim", "/text_config/linear_value_head_dim", "0", "text_config.linear_value_head_dim"},
    {"OneTap", "/text_config/linear_conv_kernel_dim", "1",
     "text_config.linear_conv_kernel_dim: found 1, expected an integer from 2 to 16"},
    {"TooManyTaps", "/text_config/linear_conv_kernel_dim", "17", "found 17"},
    {"NoPositions", "/text_config/max_position_embeddings", nullptr,
     "text_config.max_position_embeddings: found nothing"},
    {"TooManyPositions", "/text_config/max_position_embeddings", "16777217", "found 16777217"},
    {"EpsilonZero", "/text_config/rms_norm_eps", "0", "text_config.rms_norm_eps: found 0"},
    {"NoEpsilon", "/text_config/rms_norm_eps", nullptr, "text_config.rms_norm_eps: found nothing"},
    // Relations
    {"HeadsDoNotDivide", "/text_config/num_key_value_heads", "3",
     "text_config.num_key_value_heads: found 3, expected a divisor of num_attention_heads (32)"},
    {"MoreKvHeadsThanHeads", "/text_config/num_key_value_heads", "64",
     "found 64, expected a divisor of num_attention_heads (32)"},
    {"ValueHeadsDoNotDivide", "/text_config/linear_num_value_heads", "40",
     "text_config.linear_num_value_heads: found 40, expected a multiple of linear_num_key_heads "
     "(16)"},
    {"FewerValueHeads", "/text_config/linear_num_value_heads", "8", "expected a multiple of"},
    {"MoreChosenThanThere", "/text_config/num_experts_per_tok", "257",
     "text_config.num_experts_per_tok: found 257, expected at most num_experts (256)"},
    {"WideAttention", "/text_config/head_dim", "262146",
     "text_config.head_dim: found 262146, expected 2 x num_attention_heads x head_dim to be at "
     "most "
     "16777216, not 16777344"},
    {"WideDelta", "/text_config/linear_num_value_heads", "131072",
     "query, key and value heads together to be at most 16777216, not 16781312"},
    // Token ids
    {"EosOutside", "/text_config/eos_token_id", "248320",
     "text_config.eos_token_id: found 248320, expected an integer from 0 to 248319"},
    {"EosDiffers", "/eos_token_id", "5",
     "text_config.eos_token_id: found 248044, expected 5, as in the root object"},
};

INSTANTIATE_TEST_SUITE_P(QwenConfig, Qwen35Refusals, testing::ValuesIn(kQwen35Refusals),
                         [](const auto& test) { return std::string(test.param.name); });

class Qwen3MoeRefusals : public testing::TestWithParam<QwenRefusal> {};

TEST_P(Qwen3MoeRefusals, NameFieldFoundAndExpected) {
  const QwenRefusal& refusal = GetParam();
  EXPECT_THAT(message(edited(qwen3_moe(), refusal.field, refusal.value)),
              testing::StartsWith(refusal.message));
}

constexpr QwenRefusal kQwen3MoeRefusals[] = {
    {"OtherModelType", "/model_type", "\"qwen2_moe\"",
     "model_type: found \"qwen2_moe\", expected \"qwen3_moe\""},
    {"Yarn", "/rope_scaling", R"({"rope_type":"yarn","factor":4.0})",
     "rope_scaling.rope_type: found \"yarn\", expected \"default\""},
    {"OldDynamic", "/rope_scaling", R"({"type":"dynamic","factor":2.0})",
     "rope_scaling.type: found \"dynamic\", expected \"default\""},
    {"YarnParameters", "/rope_parameters", R"({"rope_type":"yarn"})",
     "rope_parameters.rope_type: found \"yarn\""},
    {"NoTheta", "/rope_theta", nullptr, "rope_theta: found nothing, expected a number from 1 to"},
    {"PartlyRotated", "/partial_rotary_factor", "0.5",
     "partial_rotary_factor: found 0.5, expected 1 (Qwen3 rotates all of a head)"},
    {"OddHead", "/head_dim", "127",
     "head_dim: found 127, expected an even number of rotated dimensions of a head, not 127"},
    {"Fp8", "/quantization_config", R"({"quant_method":"fp8"})",
     "quantization_config.quant_method: found \"fp8\", expected a BF16 checkpoint"},
    {"SlidingWindow", "/use_sliding_window", "true",
     "use_sliding_window: found true, expected false"},
    {"AttentionBias", "/attention_bias", "true", "attention_bias: found true, expected false"},
    {"Gate", "/attn_output_gate", "true",
     "attn_output_gate: found true, expected false (only Qwen3.5 has a gate on attention)"},
    {"SparseStepZero", "/decoder_sparse_step", "0", "decoder_sparse_step: found 0"},
    {"DenseLayerBeyond", "/mlp_only_layers", "[48]",
     "mlp_only_layers: found 48, expected a list of at most 48 integers from 0 to 47"},
    {"RenormaliseIsNoFlag", "/norm_topk_prob", "1", "norm_topk_prob: found 1"},
    {"MoreChosenThanThere", "/num_experts_per_tok", "129",
     "num_experts_per_tok: found 129, expected at most num_experts (128)"},
    {"WideAttention", "/head_dim", "524290",
     "head_dim: found 524290, expected num_attention_heads x head_dim to be at most 16777216"},
    {"TooManyTensors", "/num_experts", "65536",
     "num_experts: found 65536, expected a model of at most 8000000 tensors"},
};

INSTANTIATE_TEST_SUITE_P(QwenConfig, Qwen3MoeRefusals, testing::ValuesIn(kQwen3MoeRefusals),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(QwenConfig, AsksForTheWidthOfADenseLayerOnlyWhereThereIsOne) {
  json config = edited(qwen3_moe(), "/intermediate_size", nullptr);
  EXPECT_EQ(message(config), "accepted");
  config["mlp_only_layers"] = {0};
  EXPECT_THAT(message(config), HasSubstr("intermediate_size: found nothing, expected an integer"));
  EXPECT_THAT(message(edited(qwen3(), "/intermediate_size", nullptr)),
              HasSubstr("intermediate_size: found nothing, expected an integer"));
}

TEST(QwenConfig, RefusesASlidingLayerOfQwen3) {
  json types = json::array();
  for (int i = 0; i < 28; ++i) types.push_back("full_attention");
  EXPECT_EQ(message(edited(qwen3(), "/layer_types", types.dump().c_str())), "accepted");
  types[27] = "sliding_attention";
  EXPECT_THAT(message(edited(qwen3(), "/layer_types", types.dump().c_str())),
              HasSubstr("layer_types: found \"sliding_attention\", expected \"full_attention\""));
  types[27] = "linear_attention";
  EXPECT_THAT(message(edited(qwen3(), "/layer_types", types.dump().c_str())),
              HasSubstr("layer_types: found \"linear_attention\""));
}

TEST(QwenConfig, NeedsLayerTypesOrAnInterval) {
  json config = qwen35();
  config["text_config"].erase("layer_types");
  config["text_config"].erase("full_attention_interval");
  EXPECT_THAT(message(config),
              HasSubstr("text_config.layer_types: found nothing, expected a list"));
}

TEST(QwenConfig, RefusesMoreParametersThanCouldExist) {
  json config = qwen3();
  config["hidden_size"] = limits::kDimension;
  config["intermediate_size"] = limits::kDimension;
  EXPECT_THAT(message(config), HasSubstr("a model of at most 1125899906842624 parameters"));
}

TEST(QwenConfig, RefusesEveryTruncation) {
  for (const json& config : {qwen35(), qwen3_moe(), qwen3()}) {
    const std::string whole = config.dump();
    for (size_t size = 0; size < whole.size(); size += 5) {
      EXPECT_FALSE(parse_config(whole.substr(0, size)).has_value()) << size;
    }
  }
}

}  // namespace
}  // namespace deltafin::checkpoint
