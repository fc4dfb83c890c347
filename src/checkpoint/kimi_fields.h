// The config fields of the Kimi family, in three tables: those we use, those that must have one
// value, and those that are known to be without influence. A field in none of them is unknown and
// reported.
#pragma once

#include <cstdint>
#include <optional>

#include "base/limits.h"
#include "checkpoint/config_fields.h"
#include "checkpoint/contract.h"

namespace deltafin::checkpoint::kimi_fields {

// --- Used: fields that go into the contract. -----------------------------------------------------

inline constexpr CountField<KimiConfig> kCounts[] = {
    {"hidden_size", &KimiConfig::hidden_size, limits::kDimension},
    {"vocab_size", &KimiConfig::vocab_size, limits::kVocabulary},
    {"num_attention_heads", &KimiConfig::mla_head_count, limits::kDimension},
    {"kv_lora_rank", &KimiConfig::kv_lora_rank, limits::kDimension},
    {"qk_nope_head_dim", &KimiConfig::qk_nope_head_dim, limits::kDimension},
    {"qk_rope_head_dim", &KimiConfig::qk_rope_head_dim, limits::kDimension},
    {"v_head_dim", &KimiConfig::v_head_dim, limits::kDimension},
    {"intermediate_size", &KimiConfig::dense_intermediate_size, limits::kDimension},
    {"moe_intermediate_size", &KimiConfig::moe_intermediate_size, limits::kDimension},
    {"num_experts", &KimiConfig::expert_count, limits::kExperts},
    {"num_experts_per_token", &KimiConfig::experts_per_token, limits::kExperts},
    {"num_shared_experts", &KimiConfig::shared_expert_count, limits::kExperts},
    {"num_expert_group", &KimiConfig::router_group_count, limits::kExperts},
    {"topk_group", &KimiConfig::router_groups_kept, limits::kExperts},
};

inline constexpr CountField<KimiConfig> kLinearCounts[] = {
    {"num_heads", &KimiConfig::kda_head_count, limits::kDimension},
    {"head_dim", &KimiConfig::kda_head_dim, limits::kDimension},
    {"short_conv_kernel_size", &KimiConfig::conv_taps, limits::kConvTaps},
};

// What the absence of a field means is what the older member of the family, Kimi-Linear, does.
struct OptionalCountField {
  const char* name;
  std::optional<uint32_t> KimiConfig::* into;
};

inline constexpr OptionalCountField kOptionalCounts[] = {
    {"q_lora_rank", &KimiConfig::q_lora_rank},                  // absent: direct q_proj
    {"routed_expert_hidden_size", &KimiConfig::latent_size},    // absent: experts read x
    {"attn_res_block_size", &KimiConfig::attn_res_block_size},  // absent: plain residuals
};

struct FlagField {
  const char* name;
  bool KimiConfig::* into;
  Presence presence;  // an absent optional flag is false
};

inline constexpr FlagField kFlags[] = {
    {"mla_use_output_gate", &KimiConfig::mla_output_gate, Presence::Optional},
    {"latent_moe_use_norm", &KimiConfig::latent_norm, Presence::Optional},
    {"moe_renormalize", &KimiConfig::router_renormalize, Presence::Required},
};

// --- Must equal: fields of which we compute one value. -------------------------------------------

inline constexpr FixedField kFixed[] = {
    {"model_type", "\"kimi_linear\"", Presence::Required, "the text model of this family"},
    {"mla_use_nope", "true", Presence::Required, "no rotary embedding is applied"},
    {"rope_scaling", "null", Presence::Optional, "no rotary embedding is applied"},
    {"rope_parameters", "null", Presence::Optional, "no rotary embedding is applied"},
    {"sliding_window", "null", Presence::Optional, "attention reads every position"},
    {"use_sliding_window", "false", Presence::Optional, "attention reads every position"},
    {"topk_method", "\"noaux_tc\"", Presence::Optional, "the only router that is implemented"},
    {"use_grouped_topk", "true", Presence::Optional, "the only router that is implemented"},
    {"num_nextn_predict_layers", "0", Presence::Optional, "prediction layers are not run"},
    {"tie_word_embeddings", "false", Presence::Optional, "lm_head is a tensor of its own"},
    {"attention_bias", "false", Presence::Optional, "no projection of this family has a bias"},
    {"mlp_bias", "false", Presence::Optional, "no projection of this family has a bias"},
    {"attn_logit_softcapping", "null", Presence::Optional, "attention scores are not capped"},
    {"final_logit_softcapping", "null", Presence::Optional, "logits are not capped"},
    {"is_encoder_decoder", "false", Presence::Optional, "the model is a decoder"},
    {"add_cross_attention", "false", Presence::Optional, "the model is a decoder"},
    {"pruned_heads", "{}", Presence::Optional, "every head is there"},
};

// --- Ignored: fields that do not touch the result. -----------------------------------------------

// clang-format off
inline constexpr const char* kIgnored[] = {
    // Training, export, and the class of the published Python code.
    "_name_or_path", "architectures", "auto_map", "dtype", "torch_dtype", "transformers_version",
    "initializer_range", "attention_dropout", "use_cache", "use_bfloat16", "torchscript",
    "tf_legacy_loss", "tokenizer_class", "finetuning_task", "problem_type", "task_specific_params",
    "chunk_size_feed_forward", "gradient_checkpointing",
    // Left behind by a base class: this family applies no rotary embedding, and its heads have the
    // sizes named above, not hidden_size / num_attention_heads.
    "head_dim", "rope_theta",
    // What the Python code returns.
    "output_attentions", "output_hidden_states", "return_dict", "is_decoder",
    "cross_attention_hidden_size", "tie_encoder_decoder", "id2label", "label2id",
    // Defaults for generation; generation_config.json is where they count.
    "bad_words_ids", "begin_suppress_tokens", "decoder_start_token_id", "diversity_penalty",
    "do_sample", "early_stopping", "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty", "forced_bos_token_id", "forced_eos_token_id",
    "length_penalty", "max_length", "min_length", "no_repeat_ngram_size", "num_beam_groups",
    "num_beams", "num_return_sequences", "output_scores", "prefix", "remove_invalid_values",
    "repetition_penalty", "return_dict_in_generate", "sep_token_id", "suppress_tokens",
    "temperature", "top_k", "top_p", "typical_p",
    // Read once for all by parse_config, from whichever object has them.
    "bos_token_id", "eos_token_id", "pad_token_id", "quantization_config",
};
// clang-format on

}  // namespace deltafin::checkpoint::kimi_fields
