#include "cli/inspect_dimensions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <span>

#include "cli/units.h"

namespace deltafin::cli {

using checkpoint::ExpertContract;
using checkpoint::ExpertFormat;
using checkpoint::FfnKind;
using checkpoint::Inventory;
using checkpoint::KimiConfig;
using checkpoint::MixerKind;
using checkpoint::ModelContract;
using checkpoint::QwenConfig;
using nlohmann::ordered_json;

namespace {

constexpr MixerKind kKimiMixers[] = {MixerKind::Kda, MixerKind::Mla};
constexpr MixerKind kQwenMixers[] = {MixerKind::GatedDeltaNet, MixerKind::GroupedQuery};

std::span<const MixerKind> mixers_of(const ModelContract& contract) {
  return contract.kimi() != nullptr ? std::span<const MixerKind>(kKimiMixers) : kQwenMixers;
}

// What people call it.
const char* title_of(MixerKind kind) {
  switch (kind) {
    case MixerKind::Kda:
      return "KDA";
    case MixerKind::Mla:
      return "MLA";
    case MixerKind::GatedDeltaNet:
      return "Gated DeltaNet";
    case MixerKind::GroupedQuery:
      return "attention";
  }
  return "";
}

const char* format_name(ExpertFormat format) {
  switch (format) {
    case ExpertFormat::Mxfp4:
      return "mxfp4";
    case ExpertFormat::Plain:
      return "plain";
  }
  return "";
}

// That of the first layer that has experts; they are all alike.
const ExpertContract* experts_of(const ModelContract& contract) {
  for (const checkpoint::LayerContract& layer : contract.layers)
    if (layer.experts) return &*layer.experts;
  return nullptr;
}

// "93: 69 KDA, 24 MLA; 1 dense, 92 with experts"; kinds that the model does not have are left out.
std::string describe_layers(const ModelContract& contract, const Inventory& inventory) {
  std::vector<std::string> mixers, ffns;
  for (const MixerKind kind : mixers_of(contract))
    if (const uint32_t count = inventory.layers_of(kind))
      mixers.push_back(fmt::format("{} {}", count, title_of(kind)));
  if (const uint32_t count = inventory.layers_of(FfnKind::Dense))
    ffns.push_back(fmt::format("{} dense", count));
  if (const uint32_t count = inventory.layers_of(FfnKind::Moe))
    ffns.push_back(fmt::format("{} with experts", count));
  return fmt::format("{}: {}; {}", contract.layers.size(), fmt::join(mixers, ", "),
                     fmt::join(ffns, ", "));
}

std::string describe_experts(const ModelContract& contract, const ExpertContract& experts,
                             const std::string& shared) {
  return fmt::format("{} a layer, {} a token, {}; {} -> {}, {}", experts.expert_count,
                     contract.experts_per_token(), shared, experts.input_dim, experts.inner_dim,
                     experts.format == ExpertFormat::Mxfp4 ? "MXFP4" : "BF16 or F32");
}

ordered_json experts_json(const ModelContract& contract, const ExpertContract& experts,
                          uint32_t shared_count) {
  return {{"count", experts.expert_count},  {"per_token", contract.experts_per_token()},
          {"shared", shared_count},         {"input_dim", experts.input_dim},
          {"inner_dim", experts.inner_dim}, {"format", format_name(experts.format)}};
}

ordered_json common_json(const ModelContract& contract) {
  return {{"hidden_size", contract.hidden_size()},
          {"vocab_size", contract.vocab_size()},
          {"max_positions", contract.max_positions}};
}

// --- Kimi ---

void add_lines(const ModelContract& contract, const KimiConfig& kimi,
               std::vector<DimensionLine>& lines) {
  lines.push_back({"KDA", fmt::format("{} heads of {}, convolution over {}", kimi.kda_head_count,
                                      kimi.kda_head_dim, kimi.conv_taps)});
  lines.push_back({"MLA", fmt::format("{} heads, keys {} + {}, values {}, latent {}",
                                      kimi.mla_head_count, kimi.qk_nope_head_dim,
                                      kimi.qk_rope_head_dim, kimi.v_head_dim, kimi.kv_lora_rank)});
  lines.push_back({"dense", fmt::format("{} wide", kimi.dense_intermediate_size)});
  if (const ExpertContract* experts = experts_of(contract))
    lines.push_back(
        {"experts",
         describe_experts(contract, *experts, fmt::format("{} shared", kimi.shared_expert_count))});
}

ordered_json to_json(const ModelContract& contract, const KimiConfig& kimi) {
  ordered_json json = common_json(contract);
  json.update({
      {"kda_head_count", kimi.kda_head_count},
      {"kda_head_dim", kimi.kda_head_dim},
      {"conv_taps", kimi.conv_taps},
      {"mla_head_count", kimi.mla_head_count},
      {"kv_lora_rank", kimi.kv_lora_rank},
      {"qk_nope_head_dim", kimi.qk_nope_head_dim},
      {"qk_rope_head_dim", kimi.qk_rope_head_dim},
      {"v_head_dim", kimi.v_head_dim},
      {"dense_intermediate_size", kimi.dense_intermediate_size},
  });
  if (const ExpertContract* experts = experts_of(contract))
    json["experts"] = experts_json(contract, *experts, kimi.shared_expert_count);
  return json;
}

// --- Qwen ---

void add_lines(const ModelContract& contract, const QwenConfig& qwen,
               std::vector<DimensionLine>& lines) {
  if (qwen.delta_value_head_count != 0)
    lines.push_back(
        {"Gated DeltaNet",
         fmt::format("{} key heads of {}, {} value heads of {}, convolution over {}",
                     qwen.delta_key_head_count, qwen.delta_key_head_dim,
                     qwen.delta_value_head_count, qwen.delta_value_head_dim, qwen.conv_taps)});
  lines.push_back(
      {"attention", fmt::format("{} heads of {}, {} of keys and values, {} rotated{}",
                                qwen.head_count, qwen.head_dim, qwen.kv_head_count, qwen.rotary_dim,
                                qwen.attention_gate ? ", gated" : "")});
  if (qwen.dense_intermediate_size != 0)
    lines.push_back({"dense", fmt::format("{} wide", qwen.dense_intermediate_size)});
  if (const ExpertContract* experts = experts_of(contract)) {
    const std::string shared =
        qwen.shared_intermediate_size == 0
            ? "none shared"
            : fmt::format("1 shared ({} wide, gated)", qwen.shared_intermediate_size);
    lines.push_back({"experts", describe_experts(contract, *experts, shared)});
  }
  if (qwen.tied_embeddings)
    lines.push_back({"tied", "the embedding is the output head, unless the checkpoint has one"});
}

ordered_json to_json(const ModelContract& contract, const QwenConfig& qwen) {
  ordered_json json = common_json(contract);
  if (qwen.delta_value_head_count != 0)
    json.update({
        {"delta_key_head_count", qwen.delta_key_head_count},
        {"delta_value_head_count", qwen.delta_value_head_count},
        {"delta_key_head_dim", qwen.delta_key_head_dim},
        {"delta_value_head_dim", qwen.delta_value_head_dim},
        {"conv_taps", qwen.conv_taps},
    });
  json.update({
      {"head_count", qwen.head_count},
      {"kv_head_count", qwen.kv_head_count},
      {"head_dim", qwen.head_dim},
      {"rotary_dim", qwen.rotary_dim},
      {"rope_theta", qwen.rope_theta},
      {"attention_gate", qwen.attention_gate},
      {"tied_embeddings", qwen.tied_embeddings},
  });
  if (qwen.dense_intermediate_size != 0)
    json["dense_intermediate_size"] = qwen.dense_intermediate_size;
  if (const ExpertContract* experts = experts_of(contract)) {
    const bool has_shared = qwen.shared_intermediate_size != 0;
    json["experts"] = experts_json(contract, *experts, has_shared ? 1 : 0);
    if (has_shared) json["experts"]["shared_dim"] = qwen.shared_intermediate_size;
  }
  return json;
}

}  // namespace

const char* name_of(MixerKind kind) {
  switch (kind) {
    case MixerKind::Kda:
      return "kda";
    case MixerKind::Mla:
      return "mla";
    case MixerKind::GatedDeltaNet:
      return "gated_delta_net";
    case MixerKind::GroupedQuery:
      return "grouped_query";
  }
  return "";
}

const char* name_of(FfnKind kind) {
  switch (kind) {
    case FfnKind::Dense:
      return "dense";
    case FfnKind::Moe:
      return "moe";
  }
  return "";
}

std::vector<DimensionLine> dimension_lines(const ModelContract& contract,
                                           const Inventory& inventory) {
  std::vector<DimensionLine> lines = {
      {"layers", describe_layers(contract, inventory)},
      {"widths", fmt::format("hidden {}, vocabulary {}, at most {} positions",
                             contract.hidden_size(), with_separators(contract.vocab_size()),
                             with_separators(contract.max_positions))}};
  std::visit([&](const auto& config) { add_lines(contract, config, lines); }, contract.family);
  return lines;
}

ordered_json layer_counts_json(const ModelContract& contract, const Inventory& inventory) {
  ordered_json json = {{"count", contract.layers.size()}};
  for (const MixerKind kind : mixers_of(contract)) json[name_of(kind)] = inventory.layers_of(kind);
  for (const FfnKind kind : {FfnKind::Dense, FfnKind::Moe})
    json[name_of(kind)] = inventory.layers_of(kind);
  return json;
}

ordered_json dimensions_json(const ModelContract& contract) {
  return std::visit([&](const auto& config) { return to_json(contract, config); }, contract.family);
}

}  // namespace deltafin::cli
