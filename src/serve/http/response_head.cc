#include "serve/http/response_head.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <utility>

namespace deltafin::serve {
namespace {

std::string_view reason(unsigned status) {
  static constexpr std::array<std::pair<unsigned, std::string_view>, 26> reasons = {
      {{200, "OK"},
       {201, "Created"},
       {202, "Accepted"},
       {204, "No Content"},
       {301, "Moved Permanently"},
       {302, "Found"},
       {304, "Not Modified"},
       {400, "Bad Request"},
       {401, "Unauthorized"},
       {403, "Forbidden"},
       {404, "Not Found"},
       {405, "Method Not Allowed"},
       {408, "Request Timeout"},
       {409, "Conflict"},
       {410, "Gone"},
       {413, "Content Too Large"},
       {415, "Unsupported Media Type"},
       {417, "Expectation Failed"},
       {422, "Unprocessable Content"},
       {429, "Too Many Requests"},
       {431, "Request Header Fields Too Large"},
       {499, "Client Closed Request"},
       {500, "Internal Server Error"},
       {501, "Not Implemented"},
       {503, "Service Unavailable"},
       {505, "HTTP Version Not Supported"}}};
  for (const auto& [known, text] : reasons)
    if (known == status) return text;
  return "Status";
}

// "Sun, 06 Nov 1994 08:49:37 GMT"; not by strftime, which speaks the user's language.
std::string http_date() {
  static constexpr std::array days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  ::gmtime_r(&now, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days[size_t(utc.tm_wday)],
                     utc.tm_mday, months[size_t(utc.tm_mon)], 1900 + utc.tm_year, utc.tm_hour,
                     utc.tm_min, utc.tm_sec);
}

// A value may come from a client: a line feed in it would begin another header.
void append_header(std::string_view name, std::string_view value, std::string& to) {
  to.append(name).append(": ");
  for (const char c : value) to += (c == '\r' || c == '\n' || c == '\0') ? ' ' : c;
  to.append("\r\n");
}

}  // namespace

bool has_body(unsigned status) { return status >= 200 && status != 204 && status != 304; }

std::string response_head(const ResponseForm& form, unsigned status, std::string_view content_type,
                          std::optional<uint64_t> content_length, const HeaderList& more) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", status, reason(status));
  append_header("Date", http_date(), head);
  if (has_body(status)) {
    append_header("Content-Type", content_type, head);
    if (content_length)
      append_header("Content-Length", fmt::format("{}", *content_length), head);
    else if (form.http_1_1)
      append_header("Transfer-Encoding", "chunked", head);
  }
  append_header("X-Content-Type-Options", "nosniff", head);
  if (!content_length) {
    append_header("Cache-Control", "no-cache", head);
    append_header("X-Accel-Buffering", "no", head);
  }
  append_header("Connection", form.keep_alive ? "keep-alive" : "close", head);
  for (const HeaderList* list : {&form.headers, &more})
    for (const auto& [name, value] : *list) append_header(name, value, head);
  head += "\r\n";
  return head;
}

void append_chunk(std::string_view piece, std::string& to) {
  to.append(fmt::format("{:x}\r\n", piece.size())).append(piece).append("\r\n");
}

}  // namespace deltafin::serve
