// The two forms in which Qwen's models write what stands between <tool_call> and </tool_call>.
#pragma once

#include <string>
#include <string_view>

#include "text/chat/channels.h"
#include "text/chat/tool_schemas.h"

namespace deltafin::text {

// Qwen3: {"name": ..., "arguments": {...}}. Arguments that are a string with an object in it are
// that object; none at all are an empty one.
ParsedCall parse_json_call(std::string_view body);

// Qwen3.5:
//   <function=NAME>
//   <parameter=KEY>
//   value
//   </parameter>
//   </function>
//
// A value ends at </parameter>, or where a line begins with <parameter= or </function>; one line
// feed at either end of it is not its own. Its type comes from `schemas`. A body in the form of
// Qwen3 is read as such.
ParsedCall parse_element_call(std::string_view body, const ToolSchemas& schemas);
// Whether a body has come to </function>.
bool is_complete_element_call(std::string_view body);

}  // namespace deltafin::text
