#include "checkpoint/architectures.h"

#include <fmt/format.h>

namespace deltafin::checkpoint {
namespace {

using nlohmann::json;

constexpr Architecture kArchitectures[] = {
    {"KimiK3ForConditionalGeneration", ModelLine::Kimi, "kimi_k3", "text_config", "language_model.",
     "language_model.model.", "language_model.lm_head.weight"},
    {"KimiLinearForCausalLM", ModelLine::Kimi, "kimi_linear", nullptr, "", "model.",
     "lm_head.weight"},
    {"Qwen3_5MoeForConditionalGeneration", ModelLine::Qwen35Moe, "qwen3_5_moe", "text_config", "",
     "model.language_model.", "lm_head.weight"},
    {"Qwen3_5MoeForCausalLM", ModelLine::Qwen35Moe, "qwen3_5_moe_text", nullptr, "", "model.",
     "lm_head.weight"},
    {"Qwen3MoeForCausalLM", ModelLine::Qwen3Moe, "qwen3_moe", nullptr, "", "model.",
     "lm_head.weight"},
    {"Qwen3ForCausalLM", ModelLine::Qwen3, "qwen3", nullptr, "", "model.", "lm_head.weight"},
};

// Models that are easily taken for one of ours.
struct Relative {
  const char* name;
  const char* reason;
};

constexpr Relative kRelatives[] = {
    {"Qwen3NextForCausalLM",
     "the fused projections in_proj_qkvz and in_proj_ba of Qwen3-Next are not supported"},
    {"Qwen3_5ForConditionalGeneration",
     "the dense Qwen3.5 models are not supported, only those with experts (Qwen3.5-MoE)"},
    {"Qwen3_5ForCausalLM",
     "the dense Qwen3.5 models are not supported, only those with experts (Qwen3.5-MoE)"},
    {"Qwen2ForCausalLM",
     "the biases of Qwen2's query, key and value projections are not supported"},
    {"Qwen2MoeForCausalLM",
     "the biases of Qwen2's query, key and value projections are not supported"},
    {"Qwen3VLForConditionalGeneration",
     "the vision-language models of Qwen3 are not supported, only its text models"},
    {"Qwen3VLMoeForConditionalGeneration",
     "the vision-language models of Qwen3 are not supported, only its text models"},
    {"Qwen3OmniMoeForConditionalGeneration",
     "the omni models of Qwen3 are not supported, only its text models"},
    {"Qwen3ForSequenceClassification",
     "a classification head is not supported, only models that generate text"},
};

std::string supported() {
  std::string names;
  for (const Architecture& architecture : kArchitectures) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : " or ", architecture.name);
  }
  return names;
}

Result<const Architecture*> find_by_name(Fields& root) {
  const json* list = root.find("architectures");
  if (list != nullptr && list->is_array() && list->size() == 1 && list->front().is_string()) {
    const std::string name = list->front().get<std::string>();
    for (const Architecture& architecture : kArchitectures) {
      if (name == architecture.name) return &architecture;
    }
    for (const Relative& relative : kRelatives) {
      if (name != relative.name) continue;
      return root.refuse("architectures", fmt::format("another model: {}", relative.reason));
    }
  }
  return root.refuse("architectures", fmt::format("one of the supported: {}", supported()));
}

}  // namespace

Result<const Architecture*> find_architecture(Fields& root) {
  TRY(const Architecture* architecture, find_by_name(root));
  const std::string model_type = json(architecture->model_type).dump();
  TRY_STATUS(root.must_equal({.name = "model_type",
                              .value = model_type.c_str(),
                              .presence = Presence::Required,
                              .reason = architecture->name}));
  return architecture;
}

}  // namespace deltafin::checkpoint
