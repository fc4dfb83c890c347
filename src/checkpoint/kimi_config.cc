#include "checkpoint/kimi_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"

namespace deltafin::checkpoint {
namespace {

using limits::kDimension;

// --- Used: fields that go into the contract. -----------------------------------------------------

struct CountField {
  const char* name;
  uint32_t KimiConfig::* into;
  uint64_t most;  // the least is 1
};

constexpr CountField kCounts[] = {
    {"hidden_size", &KimiConfig::hidden_size, kDimension},
    {"vocab_size", &KimiConfig::vocab_size, limits::kVocabulary},
    {"num_attention_heads", &KimiConfig::mla_head_count, kDimension},
    {"kv_lora_rank", &KimiConfig::kv_lora_rank, kDimension},
    {"qk_nope_head_dim", &KimiConfig::qk_nope_head_dim, kDimension},
    {"qk_rope_head_dim", &KimiConfig::qk_rope_head_dim, kDimension},
    {"v_head_dim", &KimiConfig::v_head_dim, kDimension},
    {"intermediate_size", &KimiConfig::dense_intermediate_size, kDimension},
    {"moe_intermediate_size", &KimiConfig::moe_intermediate_size, kDimension},
    {"num_experts", &KimiConfig::expert_count, limits::kExperts},
    {"num_experts_per_token", &KimiConfig::experts_per_token, limits::kExperts},
    {"num_shared_experts", &KimiConfig::shared_expert_count, limits::kExperts},
    {"num_expert_group", &KimiConfig::router_group_count, limits::kExperts},
    {"topk_group", &KimiConfig::router_groups_kept, limits::kExperts},
};

constexpr CountField kLinearCounts[] = {
    {"num_heads", &KimiConfig::kda_head_count, kDimension},
    {"head_dim", &KimiConfig::kda_head_dim, kDimension},
    {"short_conv_kernel_size", &KimiConfig::conv_taps, limits::kConvTaps},
};

// What the absence of a field means is what the older member of the family, Kimi-Linear, does.
struct OptionalCountField {
  const char* name;
  std::optional<uint32_t> KimiConfig::* into;
};

constexpr OptionalCountField kOptionalCounts[] = {
    {"q_lora_rank", &KimiConfig::q_lora_rank},                  // absent: direct q_proj
    {"routed_expert_hidden_size", &KimiConfig::latent_size},    // absent: experts read x
    {"attn_res_block_size", &KimiConfig::attn_res_block_size},  // absent: plain residuals
};

struct FlagField {
  const char* name;
  bool KimiConfig::* into;
  Presence presence;  // an absent optional flag is false
};

constexpr FlagField kFlags[] = {
    {"mla_use_output_gate", &KimiConfig::mla_output_gate, Presence::Optional},
    {"latent_moe_use_norm", &KimiConfig::latent_norm, Presence::Optional},
    {"moe_renormalize", &KimiConfig::router_renormalize, Presence::Required},
};

// --- Must equal: fields of which we compute one value. -------------------------------------------

constexpr FixedField kFixed[] = {
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

constexpr FixedField kFixedQuantization[] = {
    {"quant_method", "\"compressed-tensors\"", Presence::Required, "how K3 is published"},
    {"format", "\"mxfp4-pack-quantized\"", Presence::Required, "the only packed format we read"},
    {"quantization_status", "\"compressed\"", Presence::Optional, "weights must be packed"},
    {"kv_cache_scheme", "null", Presence::Optional, "the cache is not quantised"},
    {"sparsity_config", "{}", Presence::Optional, "weights must be dense"},
    {"transform_config", "{}", Presence::Optional, "weights must not be rotated"},
};

constexpr FixedField kFixedGroup[] = {
    {"format", "\"mxfp4-pack-quantized\"", Presence::Optional, "the only packed format we read"},
    {"targets", "[\"Linear\"]", Presence::Required, "how K3 is published"},
    {"input_activations", "null", Presence::Optional, "activations are not quantised"},
    {"output_activations", "null", Presence::Optional, "activations are not quantised"},
};

constexpr FixedField kFixedWeights[] = {
    {"num_bits", "4", Presence::Required, "MXFP4"},
    {"type", "\"float\"", Presence::Required, "MXFP4"},
    {"group_size", "32", Presence::Required, "MXFP4 has one scale for 32 columns"},
    {"strategy", "\"group\"", Presence::Required, "MXFP4 has one scale for 32 columns"},
    {"symmetric", "true", Presence::Required, "MXFP4 has no zero points"},
    {"dynamic", "false", Presence::Optional, "scales are stored"},
    {"scale_dtype", "\"torch.uint8\"", Presence::Optional, "scales are E8M0 bytes"},
    {"zp_dtype", "null", Presence::Optional, "MXFP4 has no zero points"},
    {"actorder", "null", Presence::Optional, "columns are in their natural order"},
    {"block_structure", "null", Presence::Optional, "scales follow rows"},
};

// --- Ignored: fields that do not touch the result. -----------------------------------------------

constexpr const char* kIgnored[] = {
    // Training, export, and the class of the published Python code.
    "_name_or_path",
    "architectures",
    "auto_map",
    "dtype",
    "torch_dtype",
    "transformers_version",
    "initializer_range",
    "attention_dropout",
    "use_cache",
    "use_bfloat16",
    "torchscript",
    "tf_legacy_loss",
    "tokenizer_class",
    "finetuning_task",
    "problem_type",
    "task_specific_params",
    "chunk_size_feed_forward",
    "gradient_checkpointing",
    // Left behind by a base class: this family applies no rotary embedding, and its heads have the
    // sizes named above, not hidden_size / num_attention_heads.
    "head_dim",
    "rope_theta",
    // What the Python code returns.
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "is_decoder",
    "cross_attention_hidden_size",
    "tie_encoder_decoder",
    "id2label",
    "label2id",
    // Defaults for generation; generation_config.json is where they count.
    "bad_words_ids",
    "begin_suppress_tokens",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_scores",
    "prefix",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    // Read once for all by parse_config, from whichever object has them.
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "quantization_config",
};

constexpr const char* kIgnoredQuantization[] = {"ignore", "global_compression_ratio", "version"};
constexpr const char* kIgnoredWeights[] = {"observer", "observer_kwargs"};

// -------------------------------------------------------------------------------------------------

uint32_t narrow(uint64_t value) { return static_cast<uint32_t>(value); }  // limits are below 2^32

Status read_counts(std::span<const CountField> table, Fields& fields, KimiConfig& kimi) {
  for (const CountField& field : table) {
    TRY(const uint64_t value, fields.integer(field.name, {1, field.most}));
    kimi.*field.into = narrow(value);
  }
  return {};
}

Status read_optional_counts(Fields& fields, KimiConfig& kimi) {
  for (const OptionalCountField& field : kOptionalCounts) {
    TRY(const std::optional<uint64_t> value, fields.optional_integer(field.name, {1, kDimension}));
    if (value) kimi.*field.into = narrow(*value);
  }
  return {};
}

Status read_flags(Fields& fields, KimiConfig& kimi) {
  for (const FlagField& field : kFlags) {
    TRY(const std::optional<bool> value, fields.optional_flag(field.name));
    if (!value && field.presence == Presence::Required) {
      return fields.refuse(field.name, "true or false");
    }
    kimi.*field.into = value.value_or(false);
  }
  return {};
}

Status check_fixed(std::span<const FixedField> table, Fields& fields) {
  for (const FixedField& field : table) TRY_STATUS(fields.must_equal(field));
  return {};
}

Status read_activation(Fields& fields, KimiConfig& kimi) {
  TRY(const std::string name, fields.word("hidden_act"));
  TRY(const std::optional<float> beta, fields.optional_real("activation_situ_beta", {0, 1e6}));
  TRY(kimi.situ_linear_beta, fields.optional_real("activation_situ_linear_beta", {1e-6, 1e6}));
  if (name == "silu") {
    kimi.activation = Activation::SwiGlu;
  } else if (name == "situ") {
    kimi.activation = Activation::SituGlu;
  } else {
    return fields.refuse("hidden_act", "\"silu\" (SwiGLU) or \"situ\" (SiTU-GLU)");
  }
  // The published code reads an absent or zero beta as 1.
  kimi.situ_beta = beta && *beta != 0 ? *beta : 1;
  return {};
}

Status read_router(Fields& fields, KimiConfig& kimi) {
  TRY(const std::string name, fields.word("moe_router_activation_func"));
  if (name == "sigmoid") {
    kimi.router_score = RouterScore::Sigmoid;
  } else if (name == "softmax") {
    kimi.router_score = RouterScore::Softmax;
  } else {
    return fields.refuse("moe_router_activation_func", "\"sigmoid\" or \"softmax\"");
  }
  TRY(kimi.router_scale, fields.real("routed_scaling_factor", {1e-6, 1e6}));
  return {};
}

// `kinds` from the two lists of 1-based layer numbers, which must name every layer exactly once.
Status read_mixers(Fields& linear, std::vector<LayerKinds>& layers) {
  constexpr MixerKind kNone = static_cast<MixerKind>(0xff);
  for (LayerKinds& layer : layers) layer.mixer = kNone;
  const auto assign = [&](const char* name, MixerKind kind) -> Status {
    TRY(const std::vector<uint64_t> numbers,
        linear.integers(name, {1, layers.size()}, layers.size()));
    for (const uint64_t number : numbers) {
      MixerKind& mixer = layers[number - 1].mixer;
      if (mixer != kNone) {
        return linear.refuse(
            name,
            fmt::format("every layer once, but {} is named twice (numbers are 1-based)", number));
      }
      mixer = kind;
    }
    return {};
  };
  TRY_STATUS(assign("kda_layers", MixerKind::Kda));
  TRY_STATUS(assign("full_attn_layers", MixerKind::Mla));
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].mixer != kNone) continue;
    return linear.refuse("full_attn_layers",
                         fmt::format("kda_layers and full_attn_layers to name every layer from 1 "
                                     "to {}, but {} is in neither",
                                     layers.size(), i + 1));
  }
  return {};
}

Status read_layers(Fields& fields, Fields& linear, std::vector<LayerKinds>& layers) {
  TRY(const uint64_t count, fields.integer("num_hidden_layers", {1, limits::kLayers}));
  TRY(const uint64_t dense, fields.integer("first_k_dense_replace", {0, count}));
  TRY(const uint64_t every, fields.integer("moe_layer_freq", {1, limits::kLayers}));
  layers.resize(count);
  for (uint64_t i = 0; i < count; ++i) {
    layers[i].ffn = i >= dense && i % every == 0 ? FfnKind::Moe : FfnKind::Dense;
  }
  return read_mixers(linear, layers);
}

Status read_linear_attention(Fields& linear, KimiConfig& kimi) {
  TRY_STATUS(read_counts(kLinearCounts, linear, kimi));
  if (kimi.conv_taps < 2) {
    return linear.refuse("short_conv_kernel_size",
                         fmt::format("an integer from 2 to {}", limits::kConvTaps));
  }
  TRY(const std::optional<bool> full_rank, linear.optional_flag("use_full_rank_gate"));
  kimi.kda_full_rank_gate = full_rank.value_or(false);
  TRY(kimi.kda_gate_lower_bound, linear.optional_real("gate_lower_bound", {-1e3, -1e-3}));
  return {};
}

// Products of sizes are widths of matrices; each must be a plausible width itself.
Status check_widths(const Fields& fields, const Fields& linear, const KimiConfig& kimi) {
  const auto expected = [](const char* product, uint64_t width) {
    return fmt::format("{} to be at most {}, not {}", product, kDimension, width);
  };
  const uint64_t kda_width = uint64_t{kimi.kda_head_count} * kimi.kda_head_dim;
  if (kda_width > kDimension) {
    return linear.refuse("head_dim", expected("num_heads x head_dim", kda_width));
  }
  const uint64_t widest_head =
      uint64_t{kimi.qk_nope_head_dim} + std::max(kimi.qk_rope_head_dim, kimi.v_head_dim);
  if (kimi.mla_head_count * widest_head > kDimension) {
    return fields.refuse("num_attention_heads", expected("num_attention_heads x head width",
                                                         kimi.mla_head_count * widest_head));
  }
  const uint64_t shared = uint64_t{kimi.shared_expert_count} * kimi.moe_intermediate_size;
  if (shared > kDimension) {
    return fields.refuse("num_shared_experts",
                         expected("num_shared_experts x moe_intermediate_size", shared));
  }
  return {};
}

Status check_router(const Fields& fields, const KimiConfig& kimi) {
  if (kimi.expert_count % kimi.router_group_count != 0) {
    return fields.refuse("num_expert_group",
                         fmt::format("a divisor of num_experts ({})", kimi.expert_count));
  }
  if (kimi.router_groups_kept > kimi.router_group_count) {
    return fields.refuse("topk_group",
                         fmt::format("at most num_expert_group ({})", kimi.router_group_count));
  }
  const uint32_t group_size = kimi.expert_count / kimi.router_group_count;
  if (kimi.router_groups_kept < kimi.router_group_count && group_size < 2) {
    return fields.refuse("num_expert_group",
                         "groups of at least two experts (a group is scored by its two best)");
  }
  if (kimi.experts_per_token > group_size * kimi.router_groups_kept) {
    return fields.refuse("num_experts_per_token",
                         fmt::format("at most {}, the experts of topk_group groups (num_experts is "
                                     "{})",
                                     group_size * kimi.router_groups_kept, kimi.expert_count));
  }
  return {};
}

Status check_relations(Fields& fields, const Fields& linear, const KimiConfig& kimi) {
  TRY(const uint64_t kv_heads, fields.integer("num_key_value_heads", {1, kDimension}));
  if (kv_heads != kimi.mla_head_count) {
    return fields.refuse("num_key_value_heads",
                         fmt::format("num_attention_heads ({}): latent attention shares one key, "
                                     "not heads",
                                     kimi.mla_head_count));
  }
  TRY_STATUS(check_widths(fields, linear, kimi));
  return check_router(fields, kimi);
}

// Published under two names; both may stand there if they agree.
Result<uint64_t> read_max_positions(Fields& fields) {
  const IntegerRange range{1, limits::kPositions};
  TRY(const std::optional<uint64_t> embeddings,
      fields.optional_integer("max_position_embeddings", range));
  TRY(const std::optional<uint64_t> length, fields.optional_integer("model_max_length", range));
  if (!embeddings && !length) {
    return fields.refuse(
        "max_position_embeddings",
        fmt::format("an integer from {} to {} (or model_max_length)", range.least, range.most));
  }
  return embeddings ? *embeddings : *length;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

Result<KimiText> parse_kimi_text(Fields fields) {
  KimiText text;
  TRY_STATUS(check_fixed(kFixed, fields));
  TRY(Fields linear, fields.object("linear_attn_config"));
  TRY_STATUS(read_counts(kCounts, fields, text.kimi));
  TRY_STATUS(read_optional_counts(fields, text.kimi));
  TRY_STATUS(read_flags(fields, text.kimi));
  TRY(text.kimi.rms_norm_eps, fields.real("rms_norm_eps", {1e-12, 1e-1}));
  TRY_STATUS(read_linear_attention(linear, text.kimi));
  TRY_STATUS(read_activation(fields, text.kimi));
  TRY_STATUS(read_router(fields, text.kimi));
  TRY_STATUS(read_layers(fields, linear, text.layers));
  TRY(text.max_positions, read_max_positions(fields));
  TRY_STATUS(check_relations(fields, linear, text.kimi));
  // Without a latent there is nothing that the norm could apply to.
  if (!text.kimi.latent_size) text.kimi.latent_norm = false;
  for (const char* name : kIgnored) fields.ignore(name);
  append(text.unknown_fields, fields.unread());
  append(text.unknown_fields, linear.unread());
  return text;
}

Result<ExpertFormat> parse_quantization(Fields fields, std::vector<std::string>& unknown_fields) {
  TRY_STATUS(check_fixed(kFixedQuantization, fields));
  for (const char* name : kIgnoredQuantization) fields.ignore(name);
  TRY(Fields groups, fields.object("config_groups"));
  TRY(Fields group, groups.object("group_0"));
  if (const std::vector<std::string> more = groups.unread(); !more.empty()) {
    return fail(ErrorCode::BadModel,
                fmt::format("{}: found a second group, expected group_0 alone", more.front()));
  }
  TRY_STATUS(check_fixed(kFixedGroup, group));
  TRY(Fields weights, group.object("weights"));
  TRY_STATUS(check_fixed(kFixedWeights, weights));
  for (const char* name : kIgnoredWeights) weights.ignore(name);
  append(unknown_fields, fields.unread());
  append(unknown_fields, group.unread());
  append(unknown_fields, weights.unread());
  return ExpertFormat::Mxfp4;
}

}  // namespace deltafin::checkpoint
