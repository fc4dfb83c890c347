// A client made of system calls, which can misbehave as no library would.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace deltafin::serve {

class TestClient {
 public:
  // No test waits longer for anything.
  static constexpr std::chrono::seconds kPatience{10};

  explicit TestClient(uint16_t port, int receive_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0)
      (void)::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  ~TestClient() { close(); }

  bool connected() const { return connected_; }

  // False when the server has closed.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // One read; false at the end, after an error, or when nothing came in time.
  bool receive(std::chrono::milliseconds patience = kPatience) {
    pollfd ready = {.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(patience.count())) <= 0) {
      in_time_ = false;
      return false;
    }
    char bytes[65536];
    const ssize_t received = ::recv(socket_, bytes, sizeof bytes, 0);
    if (received > 0) received_.append(bytes, static_cast<size_t>(received));
    if (received < 0) reset_ = true;
    if (received == 0) ended_ = true;
    return received > 0;
  }

  // Reads until everything received contains `text`.
  bool receive_until(std::string_view text) {
    while (received_.find(text) == std::string::npos)
      if (!receive()) return false;
    return true;
  }
  bool receive_bytes(size_t count) {
    while (received_.size() < count)
      if (!receive()) return false;
    return true;
  }
  // Everything up to the end of the connection.
  std::string receive_all() {
    while (receive()) {
    }
    return std::exchange(received_, {});
  }
  // One answer with Content-Length.
  std::string receive_answer() {
    if (!receive_until("\r\n\r\n")) return {};
    const size_t head = received_.find("\r\n\r\n") + 4;
    constexpr std::string_view name = "Content-Length: ";
    const size_t at = received_.find(name);
    const size_t length = at < head ? std::stoul(received_.substr(at + name.size())) : 0;
    if (!receive_bytes(head + length)) return {};
    const std::string answer = received_.substr(0, head + length);
    received_.erase(0, head + length);
    return answer;
  }

  const std::string& received() const { return received_; }
  bool ended() const { return ended_; }      // the server closed in order
  bool was_reset() const { return reset_; }  // the server broke off
  bool in_time() const { return in_time_; }

  void shut_sending() { (void)::shutdown(socket_, SHUT_WR); }
  void close() {
    if (socket_ >= 0) (void)::close(std::exchange(socket_, -1));
  }
  // Closes so that the server notices at once.
  void reset() {
    const linger none = {.l_onoff = 1, .l_linger = 0};
    (void)::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close();
  }

 private:
  int socket_;
  bool connected_ = false;
  std::string received_;
  bool ended_ = false, reset_ = false, in_time_ = true;
};

}  // namespace deltafin::serve
