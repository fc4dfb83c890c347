#include "serve/tool_call_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace deltafin::serve {

ToolCallOutput to_output(text::ParsedCall call, size_t number) {
  ToolCallOutput output{.id = call.id.empty() ? fmt::format("call_{}", number) : std::move(call.id),
                        .name = std::move(call.name),
                        .arguments = {},
                        .error = {}};
  if (call.arguments) {
    output.arguments = *std::move(call.arguments);
  } else {
    output.error = std::move(call.arguments.error().what);
    output.arguments = nlohmann::json{{"raw", std::move(call.arguments.error().raw)}}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return output;
}

}  // namespace deltafin::serve
