#include "serve/http/access.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "serve/http/lower_case.h"

namespace deltafin::serve {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

bool is_address(const std::string& name) {
  in6_addr address;
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

bool host_allowed(const AccessRules& rules, const std::string& host) {
  // Who has the key is no stranger's web page, and how other machines call this one is not ours to
  // know.
  if (rules.beyond_loopback && rules.api_key) return true;
  const std::string name = host_name(host);
  if (name == "localhost" || name == "127.0.0.1" || name == "::1") return true;
  if (same_name(name, rules.address)) return true;
  // A server that listens at every address of the machine has no one address to compare with. What
  // DNS could be made to lie about is a name.
  if (rules.beyond_loopback && is_address(name)) return true;
  return std::ranges::any_of(rules.allowed_hosts, [&](const std::string& allowed) {
    return same_name(allowed, name) || same_name(allowed, host);
  });
}

bool same_origin(std::string_view origin, const std::string* host) {
  if (!host) return false;
  // https: a proxy in front of us speaks it.
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme) && same_name(origin.substr(scheme.size()), *host)) return true;
  return false;
}

bool origin_allowed(const AccessRules& rules, std::string_view origin) {
  return std::ranges::any_of(rules.allowed_origins, [&](const std::string& allowed) {
    return allowed == "*" || same_name(allowed, origin);
  });
}

bool has_key(const AccessRules& rules, const HttpRequest& request) {
  constexpr std::string_view scheme = "bearer ";
  if (const std::string* value = request.header("authorization")) {
    std::string_view given = *value;
    if (same_name(given.substr(0, scheme.size()), scheme)) {
      given.remove_prefix(scheme.size());
      given.remove_prefix(std::min(given.find_first_not_of(' '), given.size()));
      if (same_key(given, *rules.api_key)) return true;
    }
  }
  const std::string* value = request.header("x-api-key");
  return value && same_key(*value, *rules.api_key);
}

bool needs_no_key(const HttpRequest& request) {
  return (request.method == "GET" || request.method == "HEAD") &&
         (request.path == "/" || request.path == "/health");
}

// For a page of an allowed origin: that it may send the request and read the answer.
void add_cross_origin_headers(const HttpRequest& request, const std::string& origin,
                              Access& access) {
  access.headers.emplace_back("Access-Control-Allow-Origin", origin);
  access.headers.emplace_back("Vary", "Origin");
  access.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  if (!access.preflight) return;
  access.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  // Client libraries send headers of their own (x-stainless-...), which change with every version.
  if (const std::string* wanted = request.header("access-control-request-headers"))
    access.headers.emplace_back("Access-Control-Allow-Headers", *wanted);
  if (request.header("access-control-request-private-network"))
    access.headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  access.headers.emplace_back("Access-Control-Max-Age", "600");
}

ApiError forbidden(std::string message, std::string code) {
  return {.status = 403,
          .message = std::move(message),
          .type = "permission_error",
          .code = std::move(code)};
}

}  // namespace

std::string host_name(std::string_view host) {
  if (host.starts_with('[')) return lower(host.substr(1, host.find(']') - 1));
  return lower(host.substr(0, host.find(':')));
}

bool same_key(std::string_view given, std::string_view key) {
  // volatile: or the compiler might stop at the first difference.
  volatile unsigned char difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char expected = key.empty() ? '\0' : key[i % key.size()];
    difference = static_cast<unsigned char>(difference | (given[i] ^ expected));
  }
  return difference == 0;
}

Access check_access(const AccessRules& rules, const HttpRequest& request) {
  Access access;
  const std::string* host = request.header("host");
  if (host && !host_allowed(rules, *host)) {
    access.refusal =
        forbidden(fmt::format("this server is not known as '{}', which a web page may have made up "
                              "(DNS rebinding): use its address or localhost, or allow the name "
                              "with --allow-host",
                              host_name(*host)),
                  "host_not_allowed");
    return access;
  }
  if (const std::string* origin = request.header("origin"); origin && !same_origin(*origin, host)) {
    if (!origin_allowed(rules, *origin)) {
      access.refusal = forbidden(fmt::format("web pages of {} may not use this server: allow them "
                                             "with --cors {}",
                                             *origin, *origin),
                                 "origin_not_allowed");
      return access;
    }
    access.preflight =
        request.method == "OPTIONS" && request.header("access-control-request-method");
    add_cross_origin_headers(request, *origin, access);
    if (access.preflight) return access;  // it never carries a key
  }
  if (rules.api_key && !needs_no_key(request) && !has_key(rules, request)) {
    access.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"deltafin\"");
    access.refusal = ApiError{.status = 401,
                              .message =
                                  "the API key is missing or wrong: send it as "
                                  "'Authorization: Bearer KEY'",
                              .type = "authentication_error",
                              .code = "invalid_api_key"};
  }
  return access;
}

}  // namespace deltafin::serve
