// The config fields of the Kimi family (K3's text_config, or a whole Kimi-Linear config): three
// tables say which fields we use, which must have one value, and which are known to be without
// influence. Everything else is reported as unknown.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/config_fields.h"
#include "checkpoint/contract.h"

namespace deltafin::checkpoint {

struct LayerKinds {
  MixerKind mixer = MixerKind::Kda;
  FfnKind ffn = FfnKind::Dense;
};

struct KimiText {
  KimiConfig kimi;
  std::vector<LayerKinds> layers;
  ExpertFormat expert_format = ExpertFormat::Plain;
  uint64_t max_positions = 0;
  std::vector<std::string> unknown_fields;
};

// Reads `fields` and checks every size against its limit and against the others.
// Errors: BadModel, naming field, found and expected.
Result<KimiText> parse_kimi_text(Fields fields);

// How routed experts are stored, from a quantization_config. The list of layers it names as not
// quantised is not used: the tensors that are there decide, and they are checked one by one.
// Errors: BadModel, for anything but MXFP4 in groups of 32.
Result<ExpertFormat> parse_quantization(Fields fields, std::vector<std::string>& unknown_fields);

}  // namespace deltafin::checkpoint
