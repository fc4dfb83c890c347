// What tests of requests share: a server's defaults, and an error in one line.
#pragma once

#include <fmt/format.h>

#include <string>

#include "serve/api/generation_request.h"
#include "text/chat/chat_template.h"

namespace deltafin::serve {

inline ApiDefaults test_defaults(const char* chat_template = "kimi-k3") {
  ApiDefaults defaults;
  defaults.model_id = "tiny";
  defaults.drawn_seed = 77;
  defaults.vocab_size = 1000;
  defaults.chat_template = text::find_template(chat_template);
  return defaults;
}

// "400 invalid_value n | n: expected ...", or "none".
template <class T>
std::string problem(const ApiResult<T>& result) {
  if (result) return "none";
  const ApiError& error = result.error();
  return fmt::format("{} {} {} | {}", error.status, error.code, error.param, error.message);
}

}  // namespace deltafin::serve
