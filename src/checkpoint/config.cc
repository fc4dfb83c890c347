#include "checkpoint/config.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "checkpoint/architectures.h"
#include "checkpoint/config_fields.h"
#include "checkpoint/json_document.h"
#include "checkpoint/kimi_config.h"
#include "checkpoint/kimi_tensors.h"
#include "checkpoint/quantization_config.h"
#include "checkpoint/qwen_config.h"
#include "checkpoint/qwen_tensors.h"

namespace deltafin::checkpoint {
namespace {

using nlohmann::json;

// Fields of a root object that has its text model in an object of its own. Images are not read, so
// neither the vision tower nor the tokens that stand for a picture have influence.
constexpr const char* kIgnoredRoot[] = {
    "auto_map",
    "dtype",
    "torch_dtype",
    "transformers_version",
    "_name_or_path",
    "vision_config",
    "ignore_index",
    "image_placeholder",
    "media_placeholder_token_id",
    "image_token_id",
    "video_token_id",
    "vision_start_token_id",
    "vision_end_token_id",
    "use_cache",
};

constexpr FixedField kUntied = {"tie_word_embeddings", "false", Presence::Optional,
                                "lm_head is a tensor of its own"};

// The token ids that both objects may give: they must agree.
Result<std::optional<int32_t>> read_token_id(const char* name, Fields& root, Fields* text,
                                             uint32_t vocab_size) {
  const IntegerRange range{0, uint64_t{vocab_size} - 1};
  TRY(std::optional<uint64_t> id, root.optional_integer(name, range));
  if (text != nullptr) {
    TRY(const std::optional<uint64_t> inner, text->optional_integer(name, range));
    if (id && inner && *id != *inner) {
      return text->refuse(name, fmt::format("{}, as in the root object", *id));
    }
    if (!id) id = inner;
  }
  if (!id) return std::nullopt;
  return static_cast<int32_t>(*id);  // below limits::kVocabulary
}

Status read_token_ids(Fields& root, Fields* text, ModelContract& contract) {
  const uint32_t vocab_size = contract.vocab_size();
  TRY(contract.bos_token_id, read_token_id("bos_token_id", root, text, vocab_size));
  TRY(contract.eos_token_id, read_token_id("eos_token_id", root, text, vocab_size));
  TRY(contract.pad_token_id, read_token_id("pad_token_id", root, text, vocab_size));
  return {};
}

// K3 has its quantization_config in text_config; some exporters write it into the root.
Result<ExpertFormat> read_quantization(Fields& root, Fields* text,
                                       std::vector<std::string>& unknown_fields) {
  std::optional<Fields> inner;
  if (text != nullptr) {
    TRY(inner, text->optional_object("quantization_config"));
  }
  TRY(std::optional<Fields> outer, root.optional_object("quantization_config"));
  if (inner && outer) {
    return root.refuse("quantization_config",
                       "only one, but " + text->full_name("quantization_config") + " exists too");
  }
  if (inner) return parse_quantization(std::move(*inner), unknown_fields);
  if (outer) return parse_quantization(std::move(*outer), unknown_fields);
  return ExpertFormat::Plain;
}

Status check_packable(const Fields& text, const KimiConfig& kimi) {
  const auto check = [&](const char* name, uint32_t columns) -> Status {
    if (columns % 32 == 0) return {};
    return text.refuse(name, "a multiple of 32, as MXFP4 has one scale for 32 columns");
  };
  TRY_STATUS(check("moe_intermediate_size", kimi.moe_intermediate_size));
  return kimi.latent_size ? check("routed_expert_hidden_size", *kimi.latent_size)
                          : check("hidden_size", kimi.hidden_size);
}

// Before anything of the checkpoint is allocated: is the whole of a size that could exist?
Status check_totals(const Fields& text, const ModelContract& contract) {
  const uint64_t tensors = tensor_count(contract);
  if (tensors > limits::kTensors) {
    return text.refuse("num_experts", fmt::format("a model of at most {} tensors, not {}",
                                                  limits::kTensors, tensors));
  }
  const std::optional<uint64_t> parameters = parameter_count(contract);
  if (!parameters || *parameters > limits::kParameters) {
    return text.refuse(
        "num_hidden_layers",
        fmt::format("a model of at most {} parameters ({} layers of hidden size {} "
                    "have more)",
                    limits::kParameters, contract.layers.size(), contract.hidden_size()));
  }
  return {};
}

void fill_kimi_layers(const KimiText& text, ExpertFormat format, ModelContract& contract) {
  const KimiConfig& kimi = text.kimi;
  contract.globals = kimi_global_tensors(contract.names, kimi);
  for (uint32_t i = 0; i < text.layers.size(); ++i) {
    const LayerKinds kinds = text.layers[i];
    LayerContract layer{.mixer = kinds.mixer, .ffn = kinds.ffn, .trunk = {}, .experts = {}};
    layer.trunk = kimi_trunk_tensors(contract.names, kimi, i, kinds);
    if (kinds.ffn == FfnKind::Moe) {
      layer.experts = ExpertContract{.expert_count = kimi.expert_count,
                                     .input_dim = kimi.latent_size.value_or(kimi.hidden_size),
                                     .inner_dim = kimi.moe_intermediate_size,
                                     .format = format,
                                     .naming = ExpertNaming::Kimi};
    }
    contract.layers.push_back(std::move(layer));
  }
}

Status fill_kimi(Fields& root, Fields* text, ModelContract& contract) {
  Fields& model = text != nullptr ? *text : root;
  TRY_STATUS(root.must_equal(kUntied));
  TRY(KimiText sizes, parse_kimi_text(model));
  contract.family = sizes.kimi;
  contract.max_positions = sizes.max_positions;
  contract.unknown_fields = std::move(sizes.unknown_fields);
  TRY(const ExpertFormat format, read_quantization(root, text, contract.unknown_fields));
  if (format == ExpertFormat::Mxfp4) TRY_STATUS(check_packable(model, sizes.kimi));
  fill_kimi_layers(sizes, format, contract);
  return {};
}

// Qwen3.5 has it outside its text model; both objects may have it if they agree.
Result<bool> read_tied_embeddings(Fields& root, Fields* text) {
  const char* const kName = kUntied.name;
  TRY(const std::optional<bool> outer, root.optional_flag(kName));
  if (text == nullptr) return outer.value_or(false);
  TRY(const std::optional<bool> inner, text->optional_flag(kName));
  if (outer && inner && *outer != *inner) {
    return text->refuse(kName, fmt::format("{}, as in the root object", *outer));
  }
  return outer ? *outer : inner.value_or(false);
}

void fill_qwen_layers(const QwenText& text, ExpertNaming naming, ModelContract& contract) {
  const QwenConfig& qwen = *contract.qwen();
  contract.globals = qwen_global_tensors(contract.names, qwen);
  for (uint32_t i = 0; i < text.layers.size(); ++i) {
    const LayerKinds kinds = text.layers[i];
    LayerContract layer{.mixer = kinds.mixer, .ffn = kinds.ffn, .trunk = {}, .experts = {}};
    layer.trunk = qwen_trunk_tensors(contract.names, qwen, i, kinds);
    if (kinds.ffn == FfnKind::Moe) {
      layer.experts = ExpertContract{.expert_count = qwen.expert_count,
                                     .input_dim = qwen.hidden_size,
                                     .inner_dim = qwen.moe_intermediate_size,
                                     .format = ExpertFormat::Plain,
                                     .naming = naming};
    }
    contract.layers.push_back(std::move(layer));
  }
}

Status fill_qwen(ModelLine line, Fields& root, Fields* text, ModelContract& contract) {
  TRY_STATUS(refuse_quantized_qwen(root));
  if (text != nullptr) TRY_STATUS(refuse_quantized_qwen(*text));
  TRY(QwenText sizes, parse_qwen_text(line, text != nullptr ? *text : root));
  TRY(sizes.qwen.tied_embeddings, read_tied_embeddings(root, text));
  contract.family = sizes.qwen;
  contract.max_positions = sizes.max_positions;
  contract.unknown_fields = std::move(sizes.unknown_fields);
  const bool is_hybrid = line == ModelLine::Qwen35Moe;
  if (is_hybrid) contract.names.ignored = {"mtp.", "model.visual."};
  fill_qwen_layers(sizes, is_hybrid ? ExpertNaming::QwenFused : ExpertNaming::Qwen, contract);
  return {};
}

Result<ModelContract> build(const Architecture& architecture, Fields& root, Fields* text) {
  ModelContract contract;
  contract.architecture = architecture.name;
  contract.names = {.scope = architecture.scope,
                    .ignored = {},
                    .body = architecture.body,
                    .head = architecture.head};
  TRY_STATUS(architecture.line == ModelLine::Kimi
                 ? fill_kimi(root, text, contract)
                 : fill_qwen(architecture.line, root, text, contract));
  TRY_STATUS(read_token_ids(root, text, contract));
  TRY_STATUS(check_totals(text != nullptr ? *text : root, contract));
  return contract;
}

Result<ModelContract> parse_nested(const Architecture& architecture, Fields& root) {
  TRY(Fields text, root.object(architecture.text_object));
  TRY(ModelContract contract, build(architecture, root, &text));
  for (const char* name : kIgnoredRoot) root.ignore(name);
  for (std::string& name : root.unread()) contract.unknown_fields.push_back(std::move(name));
  return contract;
}

}  // namespace

Result<ModelContract> parse_config(std::string_view text) {
  TRY(const json document, parse_json_object(text));
  Fields root(document, "");
  TRY(const Architecture* architecture, find_architecture(root));
  if (architecture->text_object == nullptr) return build(*architecture, root, nullptr);
  return parse_nested(*architecture, root);
}

Result<ModelContract> load_config(const io::Storage& storage, const std::string& path) {
  TRY(const std::string text, io::read_text(storage, path, limits::kConfigBytes));
  Result<ModelContract> contract = parse_config(text);
  if (!contract) return std::unexpected(std::move(contract).error().within(path));
  return contract;
}

}  // namespace deltafin::checkpoint
