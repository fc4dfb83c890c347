#include "serve/http/request_target.h"

namespace deltafin::serve {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

}  // namespace

std::optional<RequestTarget> parse_target(std::string_view target) {
  RequestTarget result;
  if (target == "*") {
    result.path = "*";
    return result;
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::string_view host = target.substr(0, target.find_first_of("/?"));
    if (host.empty()) return std::nullopt;
    result.host = host;
    target.remove_prefix(host.size());
    break;
  }
  if (const size_t mark = target.find('?'); mark != std::string_view::npos) {
    result.query = target.substr(mark + 1);
    target = target.substr(0, mark);
  }
  if (target.empty() && result.host) target = "/";
  if (!target.starts_with('/')) return std::nullopt;
  const std::optional<std::string> path = percent_decoded(target);
  if (!path) return std::nullopt;
  result.path = *path;
  return result;
}

}  // namespace deltafin::serve
