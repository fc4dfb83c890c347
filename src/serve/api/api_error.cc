#include "serve/api/api_error.h"

#include <nlohmann/json.hpp>

#include "serve/api/field_lists.h"
#include "serve/api/field_reader.h"
#include "serve/api/json_text.h"

namespace deltafin::serve {

std::string to_json(const ApiError& error) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  const nlohmann::ordered_json json = {{"error",
                                        {{"message", error.message},
                                         {"type", error.type},
                                         {"param", or_null(error.param)},
                                         {"code", or_null(error.code)}}}};
  return json_text(json);
}

ApiError to_api_error(const Error& error) {
  // Messages about a request may have all of a name or a role in them.
  constexpr size_t kMessageBytes = 1000;
  switch (error.code) {
    case ErrorCode::Usage:
      return {.status = 400,
              .message = clip(error.what, kMessageBytes),
              .type = "invalid_request_error",
              .param = std::string(field_in(error.what)),
              .code = "invalid_value"};
    case ErrorCode::OverBudget:
      return {.status = 400,
              .message = error.what,
              .type = "invalid_request_error",
              .code = "over_budget"};
    case ErrorCode::Cancelled:
      return {.status = 499, .message = error.what, .type = "cancelled", .code = "cancelled"};
    case ErrorCode::BadModel:
    case ErrorCode::Io:
    case ErrorCode::Mismatch:
      break;
  }
  return {.status = 500, .message = error.what, .type = "server_error"};
}

}  // namespace deltafin::serve
