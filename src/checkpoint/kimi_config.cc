#include "checkpoint/kimi_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "checkpoint/kimi_fields.h"

namespace deltafin::checkpoint {
namespace {

using namespace kimi_fields;
using limits::kDimension;

uint32_t narrow(uint64_t value) { return static_cast<uint32_t>(value); }  // limits are below 2^32

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
  TRY_STATUS(read_counts<KimiConfig>(kLinearCounts, linear, kimi));
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

}  // namespace

Result<KimiText> parse_kimi_text(Fields fields) {
  KimiText text;
  TRY_STATUS(fields.must_equal(kimi_fields::kFixed));
  TRY(Fields linear, fields.object("linear_attn_config"));
  TRY_STATUS(read_counts<KimiConfig>(kimi_fields::kCounts, fields, text.kimi));
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
  for (const char* name : kimi_fields::kIgnored) fields.ignore(name);
  append(text.unknown_fields, fields.unread());
  append(text.unknown_fields, linear.unread());
  return text;
}

}  // namespace deltafin::checkpoint
