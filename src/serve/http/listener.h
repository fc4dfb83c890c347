// A listening socket, and why there is none.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "io/descriptor.h"

namespace deltafin::serve {

struct Listener {
  io::Descriptor socket;
  std::string address;  // in digits, without brackets
  uint16_t port = 0;    // the one that was free, for 0
  bool beyond_loopback = false;
};

// `host`: an address of either family, in brackets or not, or localhost (127.0.0.1).
// `allow_beyond`: whether other machines may reach it.
Result<Listener> listen_at(const std::string& host, uint16_t port, bool allow_beyond);

// Usage or Io, for an errno of bind or listen.
Error cannot_listen(const std::string& host, uint16_t port, int number);

}  // namespace deltafin::serve
