// What a client is told when something is wrong: a status and OpenAI's error object.
#pragma once

#include <expected>
#include <string>

#include "base/error.h"

namespace deltafin::serve {

struct ApiError {
  unsigned status = 500;
  std::string message = {};  // what was found, what was expected, what to do
  std::string type = {};     // "invalid_request_error", "server_error", ...
  std::string param = {};    // the field, as in "messages[3].content"; empty: null
  std::string code = {};     // "unknown_parameter", "context_length_exceeded", ...; empty: null
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

// {"error":{"message","type","param","code"}}
std::string to_json(const ApiError& error);

// Errors of the other rooms: Usage 400, OverBudget 400, BadModel and Io 500, Cancelled 499. A
// message that begins with the name of a field is about that field.
ApiError to_api_error(const Error& error);

}  // namespace deltafin::serve
