// Errors as values: a function that can fail says so in its type.
#pragma once

#include <expected>
#include <utility>

#include "base/error.h"

namespace deltafin {

template <class T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string what) {
  return std::unexpected<Error>(Error{code, std::move(what)});
}

}  // namespace deltafin

#define DELTAFIN_CONCAT_(a, b) a##b
#define DELTAFIN_CONCAT(a, b) DELTAFIN_CONCAT_(a, b)

// TRY(auto header, read_header(bytes)): the value, or return the error to the caller.
#define TRY(declaration, expression) \
  TRY_(DELTAFIN_CONCAT(try_result_, __LINE__), declaration, expression)
#define TRY_(result, declaration, expression)                                        \
  auto result = (expression);                                                        \
  if (!result) return std::unexpected<::deltafin::Error>(std::move(result).error()); \
  declaration = std::move(*result)

// TRY_STATUS(file.sync()): go on, or return the error to the caller.
#define TRY_STATUS(expression)                                                                   \
  do {                                                                                           \
    auto try_status_ = (expression);                                                             \
    if (!try_status_) return std::unexpected<::deltafin::Error>(std::move(try_status_).error()); \
  } while (false)
