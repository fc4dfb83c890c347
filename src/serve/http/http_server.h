// HTTP/1.1 on one thread, and another that looks at large bodies: connections, limits, whole and
// streamed replies. Knows nothing of what is asked for.
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

#include "base/limits.h"
#include "base/result.h"

namespace deltafin::serve {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = {};  // "GET"
  std::string path = {};    // "/v1/models": percent-decoded, without the query
  std::string query = {};   // behind '?', as it was sent
  HeaderList headers = {};  // names in lower case, in order; an absolute target's host is Host
  std::string body = {};

  // The value of the first header of that name (in lower case); null when there is none.
  const std::string* header(std::string_view name) const;
};

// What a stream still has to say: its next bytes, "" while there are none, nothing at its end.
// Called on the server's thread; must not block.
using StreamSource = std::function<std::optional<std::string>()>;

// The answer to one request. A handle: copies are the same answer. All calls from any thread, and
// after the client has gone or after the end they do nothing. The last copy dropped without an
// answer: 500.
class Reply {
 public:
  class State;
  explicit Reply(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // A whole answer; the end. Not behind the beginning of a stream.
  void send(unsigned status, std::string content_type, std::string body, HeaderList more = {});
  // Begins a streamed answer (chunked; no buffering by proxies, no cache), which is asked for as
  // fast as the client reads it. It goes on without handles; the source is dropped at its end or
  // when the client goes. One that throws breaks the answer off: the client sees that it is
  // incomplete.
  void stream(unsigned status, std::string content_type, StreamSource source, HeaderList more = {});
  // The source has more to say, or has come to its end.
  void has_more();

  // Called once, on the server's thread, when the client goes before the end; soon when it has gone
  // already (by the caller itself when the server is closed). It must not block, and should not
  // hold this reply, which would then never be dropped. A client that only shut its sending side
  // has not gone.
  void on_gone(std::function<void()> callback);

 private:
  std::shared_ptr<State> state_;
};

// base/limits.h, except in tests.
struct HttpLimits {
  using Time = std::chrono::milliseconds;
  size_t header_bytes = limits::kHttpHeaderBytes;
  size_t headers = limits::kHttpHeaders;
  size_t body_bytes = limits::kHttpBodyBytes;
  size_t body_bytes_at_once = limits::kHttpBodyBytesAtOnce;
  size_t body_bytes_of_all = limits::kHttpBodyBytesOfAll;
  size_t connections = limits::kHttpConnections;
  Time header_time = std::chrono::seconds(limits::kHttpHeaderSeconds);
  Time body_time = std::chrono::seconds(limits::kHttpBodySeconds);
  size_t body_step = limits::kHttpBodyStep;
  Time idle_time = std::chrono::seconds(limits::kHttpIdleSeconds);
  Time write_time = std::chrono::seconds(limits::kHttpWriteSeconds);
  Time gone_time = std::chrono::seconds(limits::kHttpGoneSeconds);
  Time linger_time = std::chrono::seconds(limits::kHttpLingerSeconds);
  Time accept_pause{100};  // without free descriptors
};

struct HttpOptions {
  std::string host = "127.0.0.1";  // an address, or localhost
  uint16_t port = 8000;            // 0: any free one
  // Who may ask: every request but GET / and GET /health needs "Authorization: Bearer KEY".
  std::optional<std::string> api_key = {};
  std::vector<std::string> allowed_origins = {};  // of web pages elsewhere (--cors); "*": any
  // Names besides the address itself and localhost that a Host header may have.
  std::vector<std::string> allowed_hosts = {};
  HttpLimits limits = {};
};

struct HttpCounters {
  uint64_t connections_now = 0, connections = 0, refused = 0;
  uint64_t requests = 0, bytes_in = 0, bytes_out = 0;
};

class HttpServer {
 public:
  // Called on the server's thread with each whole request that passed every check; must not block.
  // With a body above HttpLimits::body_bytes_at_once on a second thread, one after the other, where
  // it may take its time. For HEAD the body of the answer is left out by the server.
  using Handler = std::function<void(HttpRequest, Reply)>;

  // Listens from now on, on a thread of its own. Errors: Usage, naming the flag: an address that is
  // none, a port that is taken, an address beyond loopback without a key unless `insecure`.
  static Result<std::unique_ptr<HttpServer>> start(const HttpOptions& options, bool insecure,
                                                   Handler handler);
  // Closes what is open. From any thread but the server's.
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  // No new connections; replies in progress go on, for `limit` at most, then everything is closed.
  // Returns whether all ended by themselves. From any thread but the server's.
  virtual bool drain(std::chrono::milliseconds limit) = 0;
  virtual HttpCounters snapshot() const = 0;  // from any thread
};

}  // namespace deltafin::serve
