// What a request may ask of a template besides its messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/chat/json_value.h"

namespace deltafin::text {

struct ChatOptions {
  // Whether the prompt ends with the beginning of the assistant's next turn.
  bool add_generation_prompt = true;
  // Whether the model is to reason; absent: the template's default. Templates without reasoning
  // ignore it.
  std::optional<bool> thinking;
  // K3 only: how much, as low, high or max; absent: max; empty: the prompt does not say.
  std::optional<std::string> effort;
  // K3 only: the directives "none" and "required"; anything else writes nothing.
  std::string tool_choice;
  // K3 only: an object as in OpenAI's API, or null.
  JsonValue response_format;
  // K3 only: what stands for each image, in order; empty: a placeholder that is no control token.
  std::vector<std::string> image_prompts;
  // Qwen3.5 only: "Picture 1: " in front of each image.
  bool number_media = false;
};

}  // namespace deltafin::text
