// HTTP/1.1 on one thread: connections, limits, whole and streamed replies. Knows nothing of what is
// asked for.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace deltafin::serve {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // "/v1/models": percent-decoded, without the query
  std::string query;   // behind '?', as it was sent
  HeaderList headers;  // names in lower case, in order
  std::string body;

  // The value of the first header of that name (in lower case); null when there is none.
  const std::string* header(std::string_view name) const;
};

// The answer to one request. A handle: copies are the same answer. All calls from any thread, and
// after the client has gone they do nothing. The last copy dropped without an end: 500, or a
// streamed body that breaks off.
class Reply {
 public:
  // A whole answer; the end.
  void send(unsigned status, std::string content_type, std::string body, HeaderList more = {});
  // Begins a streamed answer (chunked; no buffering by proxies, no cache).
  void begin(unsigned status, std::string content_type, HeaderList more = {});
  // More of it, sent at once. False: the client has gone, or reads so slowly that
  // limits::kStreamBytes wait for it and it was given up; nothing will reach it any more.
  bool write(std::string piece);
  void end();
  // Breaks off: the client sees that the body is incomplete.
  void abort();

  // Called once, on the server's thread, when the client goes before the end; at once when it has
  // gone already. It must not block.
  void on_gone(std::function<void()> callback);
  bool gone() const;

 private:
  friend class Connection;
  class State;
  explicit Reply(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

struct HttpOptions {
  std::string host = "127.0.0.1";  // an address, or localhost
  uint16_t port = 8000;            // 0: any free one
  // Who may ask: every request but GET / and GET /health needs "Authorization: Bearer KEY".
  std::optional<std::string> api_key;
  std::vector<std::string> allowed_origins;  // of web pages elsewhere (--cors); "*": any
  // Names besides the address itself and localhost that a Host header may have.
  std::vector<std::string> allowed_hosts;
};

struct HttpCounters {
  uint64_t connections_now = 0, connections = 0, refused = 0;
  uint64_t requests = 0, bytes_in = 0, bytes_out = 0;
};

class HttpServer {
 public:
  // Called on the server's thread with each whole request that passed every check; must not block.
  using Handler = std::function<void(HttpRequest, Reply)>;

  // Listens from now on, on a thread of its own. Errors: Usage, naming the flag: an address that is
  // none, a port that is taken, an address beyond loopback without a key unless `insecure`.
  static Result<std::unique_ptr<HttpServer>> start(const HttpOptions& options, bool insecure,
                                                   Handler handler);
  virtual ~HttpServer() = default;  // closes what is open

  virtual uint16_t port() const = 0;
  // No new connections; replies in progress go on, for `limit` at most. Returns whether all ended.
  virtual bool drain(std::chrono::milliseconds limit) = 0;
  virtual HttpCounters snapshot() const = 0;  // from any thread
};

}  // namespace deltafin::serve
