// Bytes of a connection -> one request. The grammar is Boost.Beast's parser; limits and what we do
// not accept are here. No sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "serve/api/api_error.h"
#include "serve/http/http_server.h"

namespace deltafin::serve {

class RequestReader {
 public:
  enum class Step : uint8_t {
    NeedMore,  // call again with what was not used and more behind it
    Head,      // head() is complete; call again for the body
    Whole,     // take() it; what was not used belongs to the next request
    Wrong      // error(); the connection is of no more use
  };

  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();

  // Reads on. `used`: how many of the bytes are done with.
  Step read(std::string_view bytes, size_t& used);

  // From Head on: everything but the body.
  const HttpRequest& head() const;
  bool http_1_1() const;
  bool keep_alive() const;
  // Whether the client waits for "100 Continue" before it sends the body.
  bool expects_continue() const;
  uint64_t body_received() const;

  HttpRequest take();
  const ApiError& error() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace deltafin::serve
