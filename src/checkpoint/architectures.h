// The models that we can run, by what config.json calls them. Only config.cc uses this.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "checkpoint/config_fields.h"

namespace deltafin::checkpoint {

enum class ModelLine : uint8_t { Kimi, Qwen3, Qwen3Moe, Qwen35Moe };

// Where the parts of a model are, in its config and among its tensors.
struct Architecture {
  const char* name;  // in "architectures"
  ModelLine line;
  const char* model_type;   // of the root object
  const char* text_object;  // the object with the text model; null: the root itself
  const char* scope;        // TensorNames::scope, body and head
  const char* body;
  const char* head;
};

// By the fields "architectures" and "model_type" of the root object. Errors: BadModel; a relative
// of these models that needs something else is refused with what it needs.
Result<const Architecture*> find_architecture(Fields& root);

}  // namespace deltafin::checkpoint
