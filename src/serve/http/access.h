// Who may ask, and from which web pages. Pure.
//
// A browser sends requests to a local server for any page that it shows: the page's address is in
// Origin, and a name that an attacker's DNS points at this machine is in Host. Neither gets further
// than this.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api/api_error.h"
#include "serve/http/http_server.h"

namespace deltafin::serve {

struct AccessRules {
  std::optional<std::string> api_key = {};
  std::vector<std::string> allowed_origins = {};
  std::vector<std::string> allowed_hosts = {};
  std::string address = {};      // that the server listens at, without brackets
  bool beyond_loopback = false;  // other machines reach it
};

struct Access {
  std::optional<ApiError> refusal;
  bool preflight = false;  // to be answered by 204 and `headers`
  HeaderList headers;      // for the answer, whatever it is
};

// Looks at everything but the body. `request` has exactly one Host header, or none (HTTP/1.0).
Access check_access(const AccessRules& rules, const HttpRequest& request);

// Whether the texts are the same, in a time that depends on the length of `given` alone.
bool same_key(std::string_view given, std::string_view key);

// "example.com" of "example.com:80", "::1" of "[::1]:80"; in lower case.
std::string host_name(std::string_view host);

}  // namespace deltafin::serve
