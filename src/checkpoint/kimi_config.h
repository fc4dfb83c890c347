// The text model of the Kimi family: K3's text_config, or a whole Kimi-Linear config. Which fields
// count, and how, is listed in kimi_fields.h.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/config_fields.h"
#include "checkpoint/contract.h"

namespace deltafin::checkpoint {

struct KimiText {
  KimiConfig kimi;
  std::vector<LayerKinds> layers;
  uint64_t max_positions = 0;
  std::vector<std::string> unknown_fields;
};

// Reads `fields` and checks every size against its limit and against the others.
// Errors: BadModel, naming field, found and expected.
Result<KimiText> parse_kimi_text(Fields fields);

}  // namespace deltafin::checkpoint
