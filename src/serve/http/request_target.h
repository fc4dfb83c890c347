// The target of a request line: path and query. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace deltafin::serve {

struct RequestTarget {
  std::string path;   // percent-decoded
  std::string query;  // as it was sent
  // Of an absolute target (http://HOST/path, as proxies get it): it counts instead of Host.
  std::optional<std::string> host;
};

// Nothing: neither of /path?query, http://host/path?query and *, or percent-encoding that is wrong
// or hides a NUL.
std::optional<RequestTarget> parse_target(std::string_view target);

}  // namespace deltafin::serve
