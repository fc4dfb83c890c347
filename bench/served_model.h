// deltafin serve as a child process, with a client that asks it over HTTP.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace deltafin::bench {

struct ProcessMemory {
  uint64_t resident_bytes = 0;
  uint64_t proportional_bytes = 0;  // shared pages by their share
};

class ServedModel {
 public:
  // Listens on a free port and has loaded the model; what does not come up ends this program.
  ServedModel(const std::string& model, std::vector<std::string> more);
  ~ServedModel();
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;

  uint16_t port() const { return port_; }
  ProcessMemory memory() const;
  nlohmann::json status() const;
  // Waits until no request runs or waits.
  void wait_until_idle() const;
  // The value of one line of /metrics.
  double metric(std::string_view name) const;

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  uint16_t port_ = 0;
};

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
};

// One connection that is kept. A broken one ends this program.
class HttpClient {
 public:
  explicit HttpClient(uint16_t port);

  HttpAnswer ask(std::string_view method, std::string_view path, std::string body = {});
  HttpAnswer post(std::string_view path, const nlohmann::json& body) {
    return ask("POST", path, body.dump());
  }
  // For clients that misbehave: some bytes, and whether at least one byte came in return.
  void send(std::string_view bytes);
  bool receive_some();
  // Closes so that the server is told at once.
  void reset();

 private:
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::socket socket_{context_};
  boost::beast::flat_buffer buffer_;
};

// A whole request, as it goes over the wire; the connection ends with its answer.
std::string request_text(std::string_view path, const nlohmann::json& body);

}  // namespace deltafin::bench
