// The config fields of the Qwen family, in three tables: those we use, those that must have one
// value, and those that are known to be without influence. A field in none of them is unknown and
// reported. Layers, feed-forward kinds and rotation are read by qwen_config.cc.
#pragma once

#include "base/limits.h"
#include "checkpoint/config_fields.h"
#include "checkpoint/contract.h"

namespace deltafin::checkpoint::qwen_fields {

// --- Used: fields that go into the contract. -----------------------------------------------------

inline constexpr CountField<QwenConfig> kCounts[] = {
    {"hidden_size", &QwenConfig::hidden_size, limits::kDimension},
    {"vocab_size", &QwenConfig::vocab_size, limits::kVocabulary},
    {"num_attention_heads", &QwenConfig::head_count, limits::kDimension},
    {"num_key_value_heads", &QwenConfig::kv_head_count, limits::kDimension},
    {"head_dim", &QwenConfig::head_dim, limits::kDimension},
};

inline constexpr CountField<QwenConfig> kMoeCounts[] = {
    {"moe_intermediate_size", &QwenConfig::moe_intermediate_size, limits::kDimension},
    {"num_experts", &QwenConfig::expert_count, limits::kExperts},
    {"num_experts_per_tok", &QwenConfig::experts_per_token, limits::kExperts},
};

// Qwen3.5
inline constexpr CountField<QwenConfig> kHybridCounts[] = {
    {"shared_expert_intermediate_size", &QwenConfig::shared_intermediate_size, limits::kDimension},
    {"linear_num_key_heads", &QwenConfig::delta_key_head_count, limits::kDimension},
    {"linear_num_value_heads", &QwenConfig::delta_value_head_count, limits::kDimension},
    {"linear_key_head_dim", &QwenConfig::delta_key_head_dim, limits::kDimension},
    {"linear_value_head_dim", &QwenConfig::delta_value_head_dim, limits::kDimension},
    {"linear_conv_kernel_dim", &QwenConfig::conv_taps, limits::kConvTaps},
};

// --- Must equal: fields of which we compute one value. -------------------------------------------

inline constexpr FixedField kFixed[] = {
    {"hidden_act", "\"silu\"", Presence::Required, "the only activation of this family"},
    {"attention_bias", "false", Presence::Optional, "no projection of this family has a bias"},
    {"mlp_bias", "false", Presence::Optional, "no projection of this family has a bias"},
    {"use_sliding_window", "false", Presence::Optional, "attention reads every position"},
    {"attn_logit_softcapping", "null", Presence::Optional, "attention scores are not capped"},
    {"final_logit_softcapping", "null", Presence::Optional, "logits are not capped"},
    {"is_encoder_decoder", "false", Presence::Optional, "the model is a decoder"},
    {"add_cross_attention", "false", Presence::Optional, "the model is a decoder"},
    {"pruned_heads", "{}", Presence::Optional, "every head is there"},
};

// Qwen3 and Qwen3-MoE
inline constexpr FixedField kFixedQwen3[] = {
    {"attn_output_gate", "false", Presence::Optional, "only Qwen3.5 has a gate on attention"},
};

// The published code of Qwen3.5 reads none of the router's options: every layer has experts, and
// their weights always sum to one.
inline constexpr FixedField kFixedHybrid[] = {
    {"model_type", "\"qwen3_5_moe_text\"", Presence::Required, "the text model of Qwen3.5-MoE"},
    {"attn_output_gate", "true", Presence::Optional, "attention of Qwen3.5 has an output gate"},
    {"norm_topk_prob", "true", Presence::Optional, "Qwen3.5 always renormalises its router"},
    {"mlp_only_layers", "[]", Presence::Optional, "every layer of Qwen3.5-MoE has experts"},
    {"decoder_sparse_step", "1", Presence::Optional, "every layer of Qwen3.5-MoE has experts"},
    {"mamba_ssm_dtype", "\"float32\"", Presence::Optional, "the recurrent state is kept in F32"},
};

// --- Ignored: fields that do not touch the result. -----------------------------------------------

// clang-format off
inline constexpr const char* kIgnored[] = {
    // Training, export, and the class of the published Python code.
    "_name_or_path", "architectures", "auto_map", "dtype", "torch_dtype", "transformers_version",
    "initializer_range", "attention_dropout", "use_cache", "model_type", "router_aux_loss_coef",
    "output_router_logits", "gradient_checkpointing", "chunk_size_feed_forward",
    "problem_type", "tokenizer_class", "task_specific_params",
    // What a sliding window would be; use_sliding_window says that there is none.
    "sliding_window", "max_window_layers",
    // Prediction layers are not run.
    "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings",
    // What the Python code returns.
    "output_attentions", "output_hidden_states", "return_dict", "id2label", "label2id",
    "cross_attention_hidden_size", "is_decoder",
    // Read by parse_config, from whichever object has them.
    "bos_token_id", "eos_token_id", "pad_token_id", "quantization_config", "compression_config",
    "tie_word_embeddings",
};
// clang-format on

// Of rope_parameters: positions in a picture. Those of text are the same on all three axes, so that
// plain rotation remains.
inline constexpr const char* kIgnoredRope[] = {"mrope_section", "mrope_interleaved"};

}  // namespace deltafin::checkpoint::qwen_fields
