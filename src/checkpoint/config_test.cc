#include "checkpoint/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/limits.h"
#include "checkpoint/test_checkpoint.h"
#include "io/simulated.h"

namespace deltafin::checkpoint {
namespace {

using test::edited;
using test::json;
using test::message;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json k3() { return test::golden_config("kimi-k3.json"); }

json kimi_linear() { return test::golden_config("kimi-linear-48b.json"); }

TEST(Config, ReadsKimiK3) {
  const Result<ModelContract> contract = parse_config(k3().dump());
  ASSERT_TRUE(contract.has_value()) << contract.error().what;
  EXPECT_EQ(contract->architecture, "KimiK3ForConditionalGeneration");
  EXPECT_EQ(contract->names.scope, "language_model.");
  EXPECT_EQ(contract->max_positions, 1048576u);
  EXPECT_EQ(contract->bos_token_id, 163584);
  EXPECT_EQ(contract->eos_token_id, 163586);
  EXPECT_EQ(contract->pad_token_id, 163839);
  EXPECT_THAT(contract->unknown_fields, IsEmpty());

  const KimiConfig& kimi = *contract->kimi();
  EXPECT_EQ(kimi.hidden_size, 7168u);
  EXPECT_EQ(kimi.vocab_size, 163840u);
  EXPECT_EQ(kimi.rms_norm_eps, 1e-5f);
  EXPECT_EQ(kimi.kda_head_count, 96u);
  EXPECT_EQ(kimi.kda_head_dim, 128u);
  EXPECT_EQ(kimi.conv_taps, 4u);
  EXPECT_TRUE(kimi.kda_full_rank_gate);
  EXPECT_EQ(kimi.kda_gate_lower_bound, -5.0f);
  EXPECT_EQ(kimi.mla_head_count, 96u);
  EXPECT_EQ(kimi.q_lora_rank, 1536u);
  EXPECT_EQ(kimi.kv_lora_rank, 512u);
  EXPECT_EQ(kimi.qk_nope_head_dim, 128u);
  EXPECT_EQ(kimi.qk_rope_head_dim, 64u);
  EXPECT_EQ(kimi.v_head_dim, 128u);
  EXPECT_TRUE(kimi.mla_output_gate);
  EXPECT_EQ(kimi.activation, Activation::SituGlu);
  EXPECT_EQ(kimi.situ_beta, 4.0f);
  EXPECT_EQ(kimi.situ_linear_beta, 25.0f);
  EXPECT_EQ(kimi.dense_intermediate_size, 33792u);
  EXPECT_EQ(kimi.moe_intermediate_size, 3072u);
  EXPECT_EQ(kimi.expert_count, 896u);
  EXPECT_EQ(kimi.experts_per_token, 16u);
  EXPECT_EQ(kimi.shared_expert_count, 2u);
  EXPECT_EQ(kimi.latent_size, 3584u);
  EXPECT_TRUE(kimi.latent_norm);
  EXPECT_EQ(kimi.router_score, RouterScore::Sigmoid);
  EXPECT_TRUE(kimi.router_renormalize);
  EXPECT_EQ(kimi.router_scale, 1.0f);
  EXPECT_EQ(kimi.router_group_count, 1u);
  EXPECT_EQ(kimi.router_groups_kept, 1u);
  EXPECT_EQ(kimi.attn_res_block_size, 12u);
}

TEST(Config, PlacesKimiK3sLayersFromOneBasedLists) {
  const Result<ModelContract> contract = parse_config(k3().dump());
  ASSERT_TRUE(contract.has_value());
  ASSERT_EQ(contract->layers.size(), 93u);
  for (uint32_t i = 0; i < 93; ++i) {
    const bool is_mla = (i + 1) % 4 == 0 || i + 1 == 93;
    const LayerContract& layer = contract->layers[i];
    EXPECT_EQ(layer.mixer, is_mla ? MixerKind::Mla : MixerKind::Kda) << i;
    EXPECT_EQ(layer.ffn, i == 0 ? FfnKind::Dense : FfnKind::Moe) << i;
    EXPECT_EQ(layer.experts.has_value(), i != 0) << i;
  }
  EXPECT_EQ(contract->layers[1].experts->format, ExpertFormat::Mxfp4);
  EXPECT_EQ(contract->layers[1].experts->input_dim, 3584u);
  EXPECT_EQ(contract->layers[1].experts->inner_dim, 3072u);
}

TEST(Config, ReadsKimiLinear) {
  const Result<ModelContract> contract = parse_config(kimi_linear().dump());
  ASSERT_TRUE(contract.has_value()) << contract.error().what;
  EXPECT_EQ(contract->names.scope, "");
  EXPECT_EQ(contract->max_positions, 1048576u);
  EXPECT_THAT(contract->unknown_fields, IsEmpty());
  const KimiConfig& kimi = *contract->kimi();
  EXPECT_FALSE(kimi.kda_full_rank_gate);
  EXPECT_EQ(kimi.kda_gate_lower_bound, std::nullopt);
  EXPECT_EQ(kimi.q_lora_rank, std::nullopt);
  EXPECT_FALSE(kimi.mla_output_gate);
  EXPECT_EQ(kimi.activation, Activation::SwiGlu);
  EXPECT_EQ(kimi.latent_size, std::nullopt);
  EXPECT_FALSE(kimi.latent_norm);
  EXPECT_EQ(kimi.router_scale, 2.446f);
  EXPECT_EQ(kimi.attn_res_block_size, std::nullopt);
  ASSERT_EQ(contract->layers.size(), 27u);
  EXPECT_EQ(contract->layers[26].mixer, MixerKind::Mla);
  EXPECT_EQ(contract->layers[1].experts->format, ExpertFormat::Plain);
  EXPECT_EQ(contract->layers[1].experts->input_dim, 2304u);
}

// One edit of K3's config, and what must be said about it.
struct Refusal {
  const char* name;
  const char* field;  // pointer into the config, "/text_config/x"
  const char* value;  // JSON; null means: erase the field
  const char* message;
};

class Refusals : public testing::TestWithParam<Refusal> {};

TEST_P(Refusals, NameFieldFoundAndExpected) {
  const Refusal& refusal = GetParam();
  EXPECT_THAT(message(edited(k3(), refusal.field, refusal.value)), HasSubstr(refusal.message));
}

constexpr Refusal kRefusals[] = {
    // What model it is
    {"OtherArchitecture", "/architectures", R"(["LlamaForCausalLM"])",
     "architectures: found [\"LlamaForCausalLM\"], expected one of the supported: "
     "\"KimiK3ForConditionalGeneration\" or \"KimiLinearForCausalLM\" or "
     "\"Qwen3_5MoeForConditionalGeneration\" or \"Qwen3_5MoeForCausalLM\" or "
     "\"Qwen3MoeForCausalLM\" or \"Qwen3ForCausalLM\""},
    {"NoArchitecture", "/architectures", nullptr, "architectures: found nothing"},
    {"TwoArchitectures", "/architectures", R"(["KimiK3ForConditionalGeneration","X"])",
     "one of the supported"},
    {"OtherModelType", "/model_type", "\"kimi_k2\"",
     "model_type: found \"kimi_k2\", expected \"kimi_k3\""},
    {"NoTextConfig", "/text_config", nullptr, "text_config: found nothing, expected an object"},
    {"TextConfigIsNoObject", "/text_config", "[1]", "text_config: found [1], expected an object"},
    {"OtherTextModelType", "/text_config/model_type", "\"deepseek_v3\"",
     "text_config.model_type: found \"deepseek_v3\", expected \"kimi_linear\""},
    // Values we do not compute
    {"RopeApplied", "/text_config/mla_use_nope", "false",
     "text_config.mla_use_nope: found false, expected true (no rotary embedding"},
    {"NopeNotSaid", "/text_config/mla_use_nope", nullptr,
     "text_config.mla_use_nope: found nothing"},
    {"RopeScaling", "/text_config/rope_scaling", R"({"type":"yarn"})",
     "text_config.rope_scaling: found {\"type\":\"yarn\"}, expected null"},
    {"RopeParameters", "/text_config/rope_parameters", R"({"rope_type":"yarn"})",
     "text_config.rope_parameters"},
    {"SlidingWindow", "/text_config/sliding_window", "4096",
     "text_config.sliding_window: found 4096, expected null"},
    {"OtherRouter", "/text_config/topk_method", "\"greedy\"",
     "text_config.topk_method: found \"greedy\", expected \"noaux_tc\""},
    {"OtherRouterScore", "/text_config/moe_router_activation_func", "\"relu\"",
     "text_config.moe_router_activation_func: found \"relu\", expected \"sigmoid\" or \"softmax\""},
    {"OtherActivation", "/text_config/hidden_act", "\"gelu\"",
     "text_config.hidden_act: found \"gelu\", expected \"silu\" (SwiGLU) or \"situ\""},
    {"PredictionLayers", "/text_config/num_nextn_predict_layers", "1",
     "text_config.num_nextn_predict_layers: found 1, expected 0"},
    {"TiedEmbeddings", "/text_config/tie_word_embeddings", "true",
     "text_config.tie_word_embeddings: found true, expected false"},
    {"TiedEmbeddingsOutside", "/tie_word_embeddings", "true",
     "tie_word_embeddings: found true, expected false"},
    {"AttentionBias", "/text_config/attention_bias", "true", "text_config.attention_bias"},
    {"LogitCap", "/text_config/final_logit_softcapping", "30.0", "found 30.0, expected null"},
    {"PrunedHeads", "/text_config/pruned_heads", R"({"1":[0]})", "text_config.pruned_heads"},
    {"GroupedKeys", "/text_config/num_key_value_heads", "8",
     "text_config.num_key_value_heads: found 8, expected num_attention_heads (96)"},
    // Sizes
    {"NoHiddenSize", "/text_config/hidden_size", nullptr,
     "text_config.hidden_size: found nothing, expected an integer from 1 to 16777216"},
    {"HiddenSizeNull", "/text_config/hidden_size", "null", "text_config.hidden_size: found null"},
    {"HiddenSizeZero", "/text_config/hidden_size", "0", "text_config.hidden_size: found 0"},
    {"HiddenSizeNegative", "/text_config/hidden_size", "-7168", "found -7168"},
    {"HiddenSizeFloat", "/text_config/hidden_size", "7168.0", "found 7168.0, expected an integer"},
    {"HiddenSizeText", "/text_config/hidden_size", "\"7168\"", "found \"7168\""},
    {"HiddenSizeHuge", "/text_config/hidden_size", "16777217", "found 16777217"},
    {"HiddenSizeBeyond64Bits", "/text_config/hidden_size", "1e30", "expected an integer"},
    {"VocabularyHuge", "/text_config/vocab_size", "99999999", "text_config.vocab_size"},
    {"NoLayers", "/text_config/num_hidden_layers", "0", "text_config.num_hidden_layers: found 0"},
    {"TooManyLayers", "/text_config/num_hidden_layers", "4097", "an integer from 1 to 4096"},
    {"TooManyExperts", "/text_config/num_experts", "65537", "text_config.num_experts: found 65537"},
    {"NoSharedExpert", "/text_config/num_shared_experts", "0", "text_config.num_shared_experts"},
    {"RankZero", "/text_config/q_lora_rank", "0", "text_config.q_lora_rank: found 0"},
    {"OneTap", "/text_config/linear_attn_config/short_conv_kernel_size", "1",
     "text_config.linear_attn_config.short_conv_kernel_size: found 1, expected an integer from 2"},
    {"TooManyTaps", "/text_config/linear_attn_config/short_conv_kernel_size", "17", "found 17"},
    {"WideKda", "/text_config/linear_attn_config/num_heads", "1000000",
     "num_heads x head_dim to be at most 16777216, not 128000000"},
    {"WideMla", "/text_config/v_head_dim", "16777216",
     "num_attention_heads x head width to be at most 16777216"},
    {"WideShared", "/text_config/num_shared_experts", "60000",
     "num_shared_experts x moe_intermediate_size to be at most"},
    {"TooManyTensors", "/text_config/num_experts", "65536", "a model of at most 8000000 tensors"},
    {"NoPositions", "/text_config/max_position_embeddings", nullptr,
     "text_config.max_position_embeddings: found nothing"},
    {"TooManyPositions", "/text_config/max_position_embeddings", "16777217", "found 16777217"},
    // Reals
    {"EpsilonZero", "/text_config/rms_norm_eps", "0", "text_config.rms_norm_eps: found 0"},
    {"EpsilonText", "/text_config/rms_norm_eps", "\"1e-5\"", "expected a number"},
    {"EpsilonHuge", "/text_config/rms_norm_eps", "1", "text_config.rms_norm_eps: found 1"},
    {"ScaleNegative", "/text_config/routed_scaling_factor", "-1.0", "found -1.0"},
    {"ScaleMissing", "/text_config/routed_scaling_factor", nullptr,
     "text_config.routed_scaling_factor: found nothing"},
    {"PositiveBound", "/text_config/linear_attn_config/gate_lower_bound", "5.0", "found 5.0"},
    {"LinearBetaZero", "/text_config/activation_situ_linear_beta", "0", "found 0"},
    {"RenormalizeMissing", "/text_config/moe_renormalize", nullptr,
     "text_config.moe_renormalize: found nothing, expected true or false"},
    {"GateIsNoFlag", "/text_config/mla_use_output_gate", "1", "found 1, expected true or false"},
    // Relations
    {"MoreChosenThanThere", "/text_config/num_experts_per_token", "897",
     "text_config.num_experts_per_token: found 897, expected at most 896"},
    {"GroupsDoNotDivide", "/text_config/num_expert_group", "5",
     "text_config.num_expert_group: found 5, expected a divisor of num_experts (896)"},
    {"MoreGroupsKeptThanThere", "/text_config/topk_group", "2",
     "text_config.topk_group: found 2, expected at most num_expert_group (1)"},
    {"GroupsOfOne", "/text_config/num_expert_group", "896", "groups of at least two experts"},
    {"FewInKeptGroups", "/text_config/num_expert_group", "112",
     "text_config.num_experts_per_token: found 16, expected at most 8"},
    {"MoreDenseThanLayers", "/text_config/first_k_dense_replace", "94",
     "text_config.first_k_dense_replace: found 94"},
    {"MoeFrequencyZero", "/text_config/moe_layer_freq", "0", "text_config.moe_layer_freq: found 0"},
    {"MoeFrequencyList", "/text_config/moe_layer_freq", "[0,1]",
     "text_config.moe_layer_freq: found [0,1], expected an integer"},
    {"LayerTwice", "/text_config/linear_attn_config/full_attn_layers", "[4,4]",
     "every layer once, but 4 is named twice"},
    {"LayerInBothLists", "/text_config/linear_attn_config/full_attn_layers", "[1]",
     "every layer once, but 1 is named twice"},
    {"LayerInNeither", "/text_config/linear_attn_config/full_attn_layers", "[4]",
     "every layer from 1 to 93, but 8 is in neither"},
    {"LayerZero", "/text_config/linear_attn_config/kda_layers", "[0]",
     "text_config.linear_attn_config.kda_layers: found 0, expected a list"},
    {"LayerBeyond", "/text_config/linear_attn_config/kda_layers", "[94]", "found 94"},
    {"LayersAreNoList", "/text_config/linear_attn_config/kda_layers", "7", "expected a list"},
    {"NoLinearAttention", "/text_config/linear_attn_config", nullptr,
     "text_config.linear_attn_config: found nothing, expected an object"},
    {"UnpackableLatent", "/text_config/routed_expert_hidden_size", "3580",
     "text_config.routed_expert_hidden_size: found 3580, expected a multiple of 32"},
    {"UnpackableExpert", "/text_config/moe_intermediate_size", "3000",
     "text_config.moe_intermediate_size: found 3000, expected a multiple of 32"},
    // Token ids
    {"EosOutside", "/eos_token_id", "163840", "eos_token_id: found 163840"},
    {"EosDiffers", "/text_config/eos_token_id", "5",
     "text_config.eos_token_id: found 5, expected 163586, as in the root object"},
    {"EosList", "/eos_token_id", "[1,2]", "eos_token_id: found [1,2], expected an integer"},
    // Quantisation
    {"OtherMethod", "/text_config/quantization_config/quant_method", "\"fp8\"",
     "text_config.quantization_config.quant_method: found \"fp8\", expected "
     "\"compressed-tensors\""},
    {"OtherFormat", "/text_config/quantization_config/format", "\"pack-quantized\"",
     "text_config.quantization_config.format: found \"pack-quantized\""},
    {"OtherGroupSize", "/text_config/quantization_config/config_groups/group_0/weights/group_size",
     "16", "config_groups.group_0.weights.group_size: found 16, expected 32"},
    {"ZeroPoints", "/text_config/quantization_config/config_groups/group_0/weights/symmetric",
     "false", "weights.symmetric: found false, expected true"},
    {"Reordered", "/text_config/quantization_config/config_groups/group_0/weights/actorder",
     "\"group\"", "weights.actorder: found \"group\", expected null"},
    {"QuantisedActivations",
     "/text_config/quantization_config/config_groups/group_0/input_activations",
     R"({"num_bits":8})", "group_0.input_activations"},
    {"SecondGroup", "/text_config/quantization_config/config_groups/group_1", "{}",
     "config_groups.group_1: found a second group"},
    {"QuantisedCache", "/text_config/quantization_config/kv_cache_scheme", R"({"num_bits":8})",
     "text_config.quantization_config.kv_cache_scheme"},
    {"QuantisedTwice", "/quantization_config", R"({"quant_method":"compressed-tensors"})",
     "expected only one"},
};

INSTANTIATE_TEST_SUITE_P(Config, Refusals, testing::ValuesIn(kRefusals),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Config, RefusesMoreParametersThanCouldExist) {
  json config = k3();
  json& text = config["text_config"];
  text["hidden_size"] = limits::kDimension;
  text["intermediate_size"] = limits::kDimension;
  text["first_k_dense_replace"] = 93;
  EXPECT_THAT(message(config), HasSubstr("a model of at most 1125899906842624 parameters"));
}

TEST(Config, AcceptsVariantsThatTheMathematicsCovers) {
  const std::pair<const char*, const char*> variants[] = {
      {"/text_config/moe_router_activation_func", "\"softmax\""},
      {"/text_config/moe_layer_freq", "2"},
      {"/text_config/first_k_dense_replace", "3"},
      {"/text_config/topk_method", nullptr},
      {"/text_config/q_lora_rank", "null"},
      {"/text_config/routed_expert_hidden_size", nullptr},
      {"/text_config/attn_res_block_size", nullptr},
      {"/text_config/quantization_config", nullptr},
      {"/text_config/linear_attn_config/gate_lower_bound", nullptr},
      {"/text_config/linear_attn_config/use_full_rank_gate", "false"},
      {"/text_config/activation_situ_linear_beta", "null"},
      {"/text_config/sliding_window", "null"},
      {"/eos_token_id", nullptr},
      {"/vision_config", nullptr},
  };
  for (const auto& [field, value] : variants) {
    EXPECT_EQ(message(edited(k3(), field, value)), "accepted") << field;
  }
}

TEST(Config, KeepsTopGroupsOfExperts) {
  json config = k3();
  config["text_config"]["num_expert_group"] = 8;
  config["text_config"]["topk_group"] = 4;
  const Result<ModelContract> contract = parse_config(config.dump());
  ASSERT_TRUE(contract.has_value()) << contract.error().what;
  EXPECT_EQ(contract->kimi()->router_group_count, 8u);
  EXPECT_EQ(contract->kimi()->router_groups_kept, 4u);
}

TEST(Config, HasNoLatentNormWithoutALatent) {
  const Result<ModelContract> contract =
      parse_config(edited(k3(), "/text_config/routed_expert_hidden_size", nullptr).dump());
  ASSERT_TRUE(contract.has_value());
  EXPECT_FALSE(contract->kimi()->latent_norm);
  EXPECT_EQ(contract->layers[1].experts->input_dim, 7168u);
}

TEST(Config, ReadsAZeroOrAbsentSituBetaAsOne) {
  for (const char* const value : {"0", "null"}) {
    const Result<ModelContract> contract =
        parse_config(edited(k3(), "/text_config/activation_situ_beta", value).dump());
    ASSERT_TRUE(contract.has_value());
    EXPECT_EQ(contract->kimi()->situ_beta, 1.0f);
  }
}

TEST(Config, TakesQuantisationFromTheRootToo) {
  json config = k3();
  config["quantization_config"] = config["text_config"]["quantization_config"];
  config["text_config"].erase("quantization_config");
  const Result<ModelContract> contract = parse_config(config.dump());
  ASSERT_TRUE(contract.has_value()) << contract.error().what;
  EXPECT_EQ(contract->layers[1].experts->format, ExpertFormat::Mxfp4);
}

TEST(Config, ReportsUnknownFieldsWithoutRefusing) {
  json config = k3();
  config["novel"] = 1;
  config["text_config"]["novel\n"] = 2;
  config["text_config"]["linear_attn_config"]["novel"] = 3;
  config["text_config"]["quantization_config"]["novel"] = 4;
  const Result<ModelContract> contract = parse_config(config.dump());
  ASSERT_TRUE(contract.has_value()) << contract.error().what;
  EXPECT_THAT(contract->unknown_fields,
              ElementsAre("text_config.novel\\n", "text_config.linear_attn_config.novel",
                          "text_config.quantization_config.novel", "novel"));
}

TEST(Config, RefusesAFlatFieldOfKimiLinearByItsPlainName) {
  EXPECT_THAT(message(edited(kimi_linear(), "/rope_scaling", R"({"type":"yarn"})")),
              testing::StartsWith("rope_scaling: found {\"type\":\"yarn\"}, expected null"));
}

TEST(Config, RefusesTextThatIsNoConfig) {
  const auto error = [](const std::string& text) {
    const Result<ModelContract> contract = parse_config(text);
    return contract ? "accepted" : contract.error().what;
  };
  EXPECT_THAT(error(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("{\"a\": }"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("{\"a\": \"\xff\"}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error("{} {}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error(R"({"b": {"a": 1, "c": {"a": 0}, "a": 2}})"),
              HasSubstr("key \"a\" is given twice"));
  EXPECT_THAT(error(std::string(500'000, '[')), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("{\"a\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}"),
              HasSubstr("nested more than 32 levels deep"));
  EXPECT_THAT(error(std::string(limits::kConfigBytes + 1, ' ')),
              HasSubstr("1048577 bytes long, expected at most 1048576"));
}

TEST(Config, RefusesEveryTruncation) {
  const std::string whole = k3().dump();
  for (size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_FALSE(parse_config(whole.substr(0, size)).has_value()) << size;
  }
}

TEST(Config, NamesTheFileThatItReads) {
  io::SimulatedStorage storage;
  storage.add_file("/m/config.json", "{}");
  const Result<ModelContract> contract = load_config(storage, "/m/config.json");
  ASSERT_FALSE(contract.has_value());
  EXPECT_THAT(contract.error().what, testing::StartsWith("/m/config.json: architectures"));
  EXPECT_EQ(load_config(storage, "/m/none.json").error().code, ErrorCode::Io);
}

}  // namespace
}  // namespace deltafin::checkpoint
