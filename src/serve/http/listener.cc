#include "serve/http/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "io/os_error.h"

namespace deltafin::serve {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressList> parse_address(const std::string& host, uint16_t port) {
  std::string digits = host == "localhost" ? "127.0.0.1" : host;
  if (digits.starts_with('[') && digits.ends_with(']'))
    digits = digits.substr(1, digits.size() - 2);
  addrinfo hints = {};
  // Numbers only: a name could have several addresses, and to ask for them takes a network.
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (digits.empty() || ::getaddrinfo(digits.c_str(), std::to_string(port).c_str(), &hints, &found))
    return fail(
        ErrorCode::Usage,
        fmt::format("--host {}: not an address: give one like 127.0.0.1 or ::1, or localhost",
                    host));
  return AddressList(found, &::freeaddrinfo);
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, address, sizeof v6);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
         (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == 127);
}

std::string in_digits(const addrinfo& address) {
  char text[NI_MAXHOST] = {};
  (void)::getnameinfo(address.ai_addr, address.ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST);
  return text;
}

Result<uint16_t> port_of(int socket) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0)
    return fail(ErrorCode::Io, fmt::format("cannot ask for the port: {}", io::os_error(errno)));
  char port[NI_MAXSERV] = {};
  (void)::getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port, sizeof port,
                      NI_NUMERICSERV);
  return static_cast<uint16_t>(std::stoul(port));
}

}  // namespace

Error cannot_listen(const std::string& host, uint16_t port, int number) {
  switch (number) {
    case EADDRINUSE:
      return {ErrorCode::Usage,
              fmt::format("--port {}: something else listens there: stop it, or give another port "
                          "(0 takes any free one)",
                          port)};
    case EACCES:
      return {ErrorCode::Usage,
              fmt::format("--port {}: not allowed: ports below 1024 are the administrator's, give "
                          "one like 8000",
                          port)};
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return {ErrorCode::Usage, fmt::format("--host {}: this machine has no such address ({})",
                                            host, io::os_error(number))};
    default:
      return {ErrorCode::Io, fmt::format("cannot listen at --host {} --port {}: {}", host, port,
                                         io::os_error(number))};
  }
}

Result<Listener> listen_at(const std::string& host, uint16_t port, bool allow_beyond) {
  TRY(const AddressList addresses, parse_address(host, port));
  const addrinfo& address = *addresses;
  Listener listener;
  listener.address = in_digits(address);
  listener.beyond_loopback = !is_loopback(address.ai_addr);
  if (listener.beyond_loopback && !allow_beyond)
    return fail(ErrorCode::Usage,
                fmt::format("--host {}: other machines could use this server: protect it with "
                            "--api-key-file FILE, or say --insecure",
                            host));
  listener.socket =
      io::Descriptor(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int socket = listener.socket.get();
  if (socket < 0) return std::unexpected(cannot_listen(host, port, errno));
  const int yes = 1, no = 0;
  // A restart need not wait for the connections of the last run to be forgotten.
  (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  // "::" is every address of both families.
  if (address.ai_family == AF_INET6)
    (void)::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (::bind(socket, address.ai_addr, address.ai_addrlen) != 0 || ::listen(socket, SOMAXCONN) != 0)
    return std::unexpected(cannot_listen(host, port, errno));
  TRY(listener.port, port_of(socket));
  return listener;
}

}  // namespace deltafin::serve
