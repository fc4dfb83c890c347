#include "serve/api/json_text.h"

#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

namespace deltafin::serve {

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

double shortest_decimal(float value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(std::begin(text), std::end(text), value);
  double result = value;
  std::from_chars(text, end.ptr, result);
  return result;
}

}  // namespace deltafin::serve
