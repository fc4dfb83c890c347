#include "checkpoint/qwen_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/limits.h"
#include "checkpoint/qwen_fields.h"

namespace deltafin::checkpoint {
namespace {

using namespace qwen_fields;
using limits::kDimension;
using nlohmann::json;

// --- Rotation ---

// Where the fields of the rotation are: beside the others, or in an object of their own, which
// older configs call rope_scaling. Both places may have a field if they agree.
class RopeFields {
 public:
  static Result<RopeFields> find(Fields& text) {
    TRY(std::optional<Fields> parameters, text.optional_object("rope_parameters"));
    TRY(std::optional<Fields> scaling, text.optional_object("rope_scaling"));
    if (parameters && scaling) {
      return text.refuse("rope_scaling", "null, as rope_parameters exists too");
    }
    RopeFields fields(text, std::move(parameters ? parameters : scaling));
    TRY_STATUS(fields.check_type());
    return fields;
  }

  Result<std::optional<double>> number(const char* name, RealRange range) {
    TRY(const std::optional<double> outer, text_->optional_number(name, range));
    if (!inner_) return outer;
    TRY(const std::optional<double> inner, inner_->optional_number(name, range));
    if (outer && inner && *outer != *inner) {
      return inner_->refuse(name, fmt::format("{}, as in {}", *outer, text_->full_name(name)));
    }
    return inner ? inner : outer;
  }

  std::unexpected<Error> refuse(const char* name, const std::string& expected) {
    const bool is_inner = inner_ && (inner_->find(name) != nullptr || !text_->find(name));
    return (is_inner ? *inner_ : *text_).refuse(name, expected);
  }

  std::vector<std::string> unread() {
    if (!inner_) return {};
    for (const char* name : kIgnoredRope) inner_->ignore(name);
    return inner_->unread();
  }

 private:
  RopeFields(Fields& text, std::optional<Fields> inner) : text_(&text), inner_(std::move(inner)) {}

  // Named "type" by older configs.
  Status check_type() {
    if (!inner_) return {};
    for (const char* name : {"rope_type", "type"})
      TRY_STATUS(inner_->must_equal({.name = name,
                                     .value = "\"default\"",
                                     .presence = Presence::Optional,
                                     .reason = "scaled rotations (yarn, linear, dynamic, "
                                               "longrope) are not supported"}));
    return {};
  }

  Fields* text_;
  std::optional<Fields> inner_;
};

Status read_rotation(ModelLine line, Fields& fields, QwenText& text) {
  TRY(RopeFields rope, RopeFields::find(fields));
  constexpr RealRange kThetas{1, 1e12};
  TRY(const std::optional<double> theta, rope.number("rope_theta", kThetas));
  if (!theta) {
    return rope.refuse("rope_theta",
                       fmt::format("a number from {} to {}", kThetas.least, kThetas.most));
  }
  text.qwen.rope_theta = *theta;

  const char* const kFactor = "partial_rotary_factor";
  TRY(const std::optional<double> factor, rope.number(kFactor, {0, 1}));
  const bool is_partial = line == ModelLine::Qwen35Moe;
  if (is_partial && !factor) return rope.refuse(kFactor, "a number from 0 to 1");
  if (!is_partial && factor && *factor != 1) {
    return rope.refuse(kFactor, "1 (Qwen3 rotates all of a head)");
  }
  text.qwen.rotary_dim = static_cast<uint32_t>(std::floor(text.qwen.head_dim * factor.value_or(1)));
  if (text.qwen.rotary_dim == 0 || text.qwen.rotary_dim % 2 != 0) {
    const std::string expected =
        fmt::format("an even number of rotated dimensions of a head, not {}", text.qwen.rotary_dim);
    return is_partial ? rope.refuse(kFactor, expected) : fields.refuse("head_dim", expected);
  }
  append(text.unknown_fields, rope.unread());
  return {};
}

// --- Layers ---

Result<MixerKind> mixer_of(const json& type, ModelLine line, const Fields& fields) {
  const bool is_hybrid = line == ModelLine::Qwen35Moe;
  if (type == "full_attention") return MixerKind::GroupedQuery;
  if (type == "linear_attention" && is_hybrid) return MixerKind::GatedDeltaNet;
  return fields.refuse("layer_types", &type,
                       is_hybrid ? "\"linear_attention\" or \"full_attention\""
                                 : "\"full_attention\" (attention reads every position)");
}

Status read_layer_types(const json& types, ModelLine line, const Fields& fields,
                        std::vector<LayerKinds>& layers) {
  if (!types.is_array() || types.size() != layers.size()) {
    return fields.refuse("layer_types",
                         fmt::format("a list of {} kinds, one for each layer", layers.size()));
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    TRY(layers[i].mixer, mixer_of(types[i], line, fields));
  }
  return {};
}

// layer_types rules; where it is missing, every so-many-eth layer of Qwen3.5 is full attention.
Status read_mixers(ModelLine line, Fields& fields, std::vector<LayerKinds>& layers) {
  const IntegerRange range{1, limits::kLayers};
  std::optional<uint64_t> interval = 1;
  if (line == ModelLine::Qwen35Moe) {
    TRY(interval, fields.optional_integer("full_attention_interval", range));
  }
  const json* types = fields.find("layer_types");
  if (types != nullptr) return read_layer_types(*types, line, fields, layers);
  if (!interval) {
    return fields.refuse("layer_types",
                         "a list of kinds, one for each layer (or an integer "
                         "full_attention_interval)");
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].mixer = (i + 1) % *interval == 0 ? MixerKind::GroupedQuery : MixerKind::GatedDeltaNet;
  }
  return {};
}

// As the published code has it: a layer has experts unless it is listed, if its 1-based number is a
// multiple of the step.
Status read_sparse_layers(Fields& fields, std::vector<LayerKinds>& layers) {
  TRY(const std::optional<uint64_t> step,
      fields.optional_integer("decoder_sparse_step", {1, limits::kLayers}));
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].ffn = (i + 1) % step.value_or(1) == 0 ? FfnKind::Moe : FfnKind::Dense;
  }
  if (fields.find("mlp_only_layers") == nullptr) return {};
  TRY(const std::vector<uint64_t> dense,
      fields.integers("mlp_only_layers", {0, layers.size() - 1}, layers.size()));
  for (const uint64_t layer : dense) layers[layer].ffn = FfnKind::Dense;
  return {};
}

Status read_feed_forward(ModelLine line, Fields& fields, QwenText& text) {
  const auto set_all = [&](FfnKind kind) {
    for (LayerKinds& layer : text.layers) layer.ffn = kind;
  };
  if (line != ModelLine::Qwen3) {
    TRY_STATUS(read_counts<QwenConfig>(kMoeCounts, fields, text.qwen));
    set_all(FfnKind::Moe);
  } else {
    set_all(FfnKind::Dense);
  }
  if (line == ModelLine::Qwen3Moe) {
    TRY_STATUS(read_sparse_layers(fields, text.layers));
    TRY(const std::optional<bool> renormalize, fields.optional_flag("norm_topk_prob"));
    text.qwen.router_renormalize = renormalize.value_or(false);  // as the published class
  }

  // Published with every Qwen3-MoE, though only a dense layer has this width.
  const bool has_dense = std::ranges::count(text.layers, FfnKind::Dense, &LayerKinds::ffn) > 0;
  if (!has_dense) {
    fields.ignore("intermediate_size");
    return {};
  }
  TRY(const uint64_t width, fields.integer("intermediate_size", {1, kDimension}));
  text.qwen.dense_intermediate_size = static_cast<uint32_t>(width);
  return {};
}

// --- Sizes against each other ---

// Products of sizes are widths of matrices; each must be a plausible width itself.
Status check_width(const Fields& fields, const char* name, const char* product, uint64_t width) {
  if (width <= kDimension) return {};
  return fields.refuse(name,
                       fmt::format("{} to be at most {}, not {}", product, kDimension, width));
}

Status check_attention(const Fields& fields, const QwenConfig& qwen) {
  if (qwen.head_count % qwen.kv_head_count != 0) {
    return fields.refuse("num_key_value_heads",
                         fmt::format("a divisor of num_attention_heads ({})", qwen.head_count));
  }
  const uint64_t width = uint64_t{qwen.head_count} * qwen.head_dim;
  return qwen.attention_gate
             ? check_width(fields, "head_dim", "2 x num_attention_heads x head_dim", 2 * width)
             : check_width(fields, "head_dim", "num_attention_heads x head_dim", width);
}

Status check_gated_delta_net(const Fields& fields, const QwenConfig& qwen) {
  if (qwen.conv_taps < 2) {
    return fields.refuse("linear_conv_kernel_dim",
                         fmt::format("an integer from 2 to {}", limits::kConvTaps));
  }
  if (qwen.delta_value_head_count % qwen.delta_key_head_count != 0) {
    return fields.refuse(
        "linear_num_value_heads",
        fmt::format("a multiple of linear_num_key_heads ({})", qwen.delta_key_head_count));
  }
  const uint64_t keys = uint64_t{qwen.delta_key_head_count} * qwen.delta_key_head_dim;
  const uint64_t values = uint64_t{qwen.delta_value_head_count} * qwen.delta_value_head_dim;
  return check_width(fields, "linear_num_value_heads", "query, key and value heads together",
                     2 * keys + values);
}

Status check_router(const Fields& fields, const QwenConfig& qwen) {
  if (qwen.experts_per_token <= qwen.expert_count) return {};
  return fields.refuse("num_experts_per_tok",
                       fmt::format("at most num_experts ({})", qwen.expert_count));
}

Status read_hybrid(Fields& fields, QwenConfig& qwen) {
  TRY_STATUS(fields.must_equal(kFixedHybrid));
  TRY_STATUS(read_counts<QwenConfig>(kHybridCounts, fields, qwen));
  qwen.zero_centred_norms = true;
  qwen.attention_gate = true;
  return check_gated_delta_net(fields, qwen);
}

}  // namespace

Result<QwenText> parse_qwen_text(ModelLine line, Fields fields) {
  QwenText text;
  TRY_STATUS(fields.must_equal(qwen_fields::kFixed));
  TRY_STATUS(read_counts<QwenConfig>(qwen_fields::kCounts, fields, text.qwen));
  TRY_STATUS(line == ModelLine::Qwen35Moe ? read_hybrid(fields, text.qwen)
                                          : fields.must_equal(kFixedQwen3));
  TRY(text.qwen.rms_norm_eps, fields.real("rms_norm_eps", {1e-12, 1e-1}));
  TRY_STATUS(check_attention(fields, text.qwen));
  TRY_STATUS(read_rotation(line, fields, text));
  TRY(const uint64_t layers, fields.integer("num_hidden_layers", {1, limits::kLayers}));
  text.layers.resize(layers);
  TRY_STATUS(read_mixers(line, fields, text.layers));
  TRY_STATUS(read_feed_forward(line, fields, text));
  TRY_STATUS(check_router(fields, text.qwen));
  TRY(text.max_positions, fields.integer("max_position_embeddings", {1, limits::kPositions}));
  for (const char* name : qwen_fields::kIgnored) fields.ignore(name);
  append(text.unknown_fields, fields.unread());
  return text;
}

Status refuse_quantized_qwen(Fields& fields) {
  for (const char* name : {"quantization_config", "compression_config"}) {
    TRY(std::optional<Fields> method, fields.optional_object(name));
    if (!method) continue;
    return method->refuse("quant_method",
                          "a BF16 checkpoint without it: quantised derivatives of Qwen (FP8, GPTQ, "
                          "AWQ, NVFP4, compressed-tensors) are not supported");
  }
  return {};
}

}  // namespace deltafin::checkpoint
