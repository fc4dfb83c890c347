// The text model of the Qwen family: Qwen3.5's text_config, or a whole flat config. Which fields
// count, and how, is listed in qwen_fields.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/architectures.h"
#include "checkpoint/config_fields.h"
#include "checkpoint/contract.h"

namespace deltafin::checkpoint {

struct QwenText {
  QwenConfig qwen;  // but for tied_embeddings, which may stand outside the text model
  std::vector<LayerKinds> layers;
  uint64_t max_positions = 0;
  std::vector<std::string> unknown_fields;
};

// Reads `fields` of a model of one of the Qwen lines and checks every size against its limit and
// against the others. Errors: BadModel, naming field, found and expected.
Result<QwenText> parse_qwen_text(ModelLine line, Fields fields);

// This family is read as BF16 (or F32); what has been packed afterwards is refused, by its method.
Status refuse_quantized_qwen(Fields& fields);

}  // namespace deltafin::checkpoint
