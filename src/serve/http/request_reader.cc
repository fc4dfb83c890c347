#include "serve/http/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/beast/http/basic_parser.hpp>
#include <utility>

#include "serve/http/lower_case.h"
#include "serve/http/request_target.h"
#include "serve/http/response_head.h"

namespace deltafin::serve {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

ApiError wrong(unsigned status, std::string message, std::string code) {
  return {.status = status,
          .message = std::move(message),
          .type = "invalid_request_error",
          .code = std::move(code)};
}

// Headers of which two would be two opinions.
bool only_once(std::string_view name) {
  static constexpr std::array names = {"host", "origin", "authorization", "x-api-key", "expect"};
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

// Beast calls the on_..._impl functions while it parses; an error code set there ends it.
struct RequestReader::Parser : http::basic_parser<true> {
  explicit Parser(const HttpLimits& of_connection) : limits(of_connection) {
    header_limit(static_cast<uint32_t>(limits.header_bytes));
    body_limit(limits.body_bytes);
  }

  const HttpLimits& limits;
  HttpRequest request;
  bool http_1_1 = true;
  bool host_of_target = false;
  bool head_done = false;  // fields that follow are trailers of a chunked body
  bool expects_continue = false;
  std::optional<ApiError> error;

  void refuse(ApiError what, error_code& code) {
    error = std::move(what);
    code = http::error::bad_value;
  }

  // What the parser itself found.
  ApiError describe(const error_code& code) const {
    if (error) return *error;
    if (code == http::error::header_limit)
      return wrong(431, fmt::format("the headers have more than {} bytes", limits.header_bytes),
                   "headers_too_large");
    if (code == http::error::body_limit)
      return wrong(413, fmt::format("the body has more than {} bytes", limits.body_bytes),
                   "request_too_large");
    if (code == http::error::bad_version)
      return wrong(505, "only HTTP/1.1 and HTTP/1.0 are spoken here", "http_version");
    return wrong(400, fmt::format("malformed HTTP request: {}", code.message()), "malformed");
  }

  void on_request_impl(http::verb, string_view method, string_view target, int version,
                       error_code& code) override {
    http_1_1 = version == 11;
    std::optional<RequestTarget> parsed = serve::parse_target({target.data(), target.size()});
    if (!parsed)
      return refuse(wrong(400,
                          "the target of the request line is neither a path with correct "
                          "percent-encoding nor an http address",
                          "bad_target"),
                    code);
    request.method = method;
    request.path = std::move(parsed->path);
    request.query = std::move(parsed->query);
    host_of_target = parsed->host.has_value();
    if (host_of_target) request.headers.emplace_back("host", *std::move(parsed->host));
  }

  void on_field_impl(http::field, string_view beast_name, string_view value,
                     error_code& code) override {
    if (head_done) return;
    std::string name = lower({beast_name.data(), beast_name.size()});
    if (request.headers.size() >= limits.headers)
      return refuse(wrong(431, fmt::format("more than {} headers", limits.headers), "headers"),
                    code);
    if (only_once(name) && request.header(name)) {
      // That of an absolute target counts instead.
      if (name == "host" && host_of_target) return;
      return refuse(wrong(400, fmt::format("more than one header {}", name), "duplicate_header"),
                    code);
    }
    request.headers.emplace_back(std::move(name), std::string(value));
  }

  void on_header_impl(error_code& code) override {
    head_done = true;
    if (const std::string* coding = request.header("transfer-encoding");
        coding && lower(*coding) != "chunked")
      return refuse(
          wrong(501, fmt::format("transfer encoding '{}': only chunked is known", *coding),
                "transfer_encoding"),
          code);
    if (const std::string* coding = request.header("content-encoding");
        coding && lower(*coding) != "identity")
      return refuse(wrong(415, fmt::format("content encoding '{}': send it plain", *coding),
                          "content_encoding"),
                    code);
    if (!request.header("host") && http_1_1)
      return refuse(wrong(400, "a request of HTTP/1.1 needs a header Host", "host_missing"), code);
    if (const std::string* expect = request.header("expect"); expect && http_1_1) {
      if (lower(*expect) != "100-continue")
        return refuse(
            wrong(417, fmt::format("cannot do what Expect: {} asks for", *expect), "expectation"),
            code);
      expects_continue = true;
    }
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  size_t on_body_impl(string_view piece, error_code&) override { return add(piece); }
  size_t on_chunk_body_impl(std::uint64_t, string_view piece, error_code&) override {
    return add(piece);
  }
  size_t add(string_view piece) {
    request.body.append(piece.data(), piece.size());
    return piece.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view extensions, error_code& code) override {
    // Nobody uses them, and they would be bytes that count for no limit.
    if (!extensions.empty())
      refuse(wrong(400, "extensions of chunks are not accepted", "chunk_extension"), code);
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_finish_impl(error_code&) override {}
};

RequestReader::RequestReader(const HttpLimits& limits)
    : parser_(std::make_unique<Parser>(limits)) {}
RequestReader::~RequestReader() = default;

RequestReader::Step RequestReader::read(std::string_view bytes, size_t& used) {
  used = 0;
  while (!parser_->is_done()) {
    const std::string_view rest = bytes.substr(used);
    // No chunked body ends in fewer bytes, and Beast asserts that it sees as many of the last
    // chunk.
    const size_t least = parser_->head_done && parser_->chunked() ? kLastChunk.size() : 1;
    if (rest.size() < least) return Step::NeedMore;
    const bool had_head = parser_->head_done;
    error_code code;
    used += parser_->put({rest.data(), rest.size()}, code);
    if (code == http::error::need_more) {
      // Lines of a chunked body: Beast would wait for their end for ever.
      if (bytes.size() - used <= parser_->limits.header_bytes) return Step::NeedMore;
      code = http::error::header_limit;
    }
    if (code) {
      parser_->error = parser_->describe(code);
      return Step::Wrong;
    }
    if (!had_head) return Step::Head;
  }
  return Step::Whole;
}

const HttpRequest& RequestReader::head() const { return parser_->request; }
bool RequestReader::http_1_1() const { return parser_->http_1_1; }
bool RequestReader::keep_alive() const { return parser_->http_1_1 && parser_->keep_alive(); }
bool RequestReader::expects_continue() const { return parser_->expects_continue; }
uint64_t RequestReader::body_received() const { return parser_->request.body.size(); }

HttpRequest RequestReader::take() { return std::move(parser_->request); }
const ApiError& RequestReader::error() const { return *parser_->error; }

}  // namespace deltafin::serve
