#include "served_model.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <fstream>
#include <thread>

namespace deltafin::bench {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "server_bench: {}\n", what);
  std::exit(1);
}

// "VmRSS:     1234 kB" -> bytes.
uint64_t kilobytes_of(const std::string& file, std::string_view field) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(field)) return std::stoull(line.substr(field.size())) * 1024;
  return 0;
}

}  // namespace

ServedModel::ServedModel(const std::string& model, std::vector<std::string> more) {
  std::vector<std::string> words = {DELTAFIN_PROGRAM, "serve", model, "--port", "0"};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) give_up("no pipe");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  output_ = ends[0];
  std::string output;
  for (char c = 0; !output.ends_with("/\n");) {
    if (::read(output_, &c, 1) != 1) give_up("the server does not start");
    output += c;
  }
  port_ = static_cast<uint16_t>(std::stoi(output.substr(output.rfind(':') + 1)));
  while (HttpClient(port_).ask("GET", "/health").status != 200)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

ServedModel::~ServedModel() {
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
  ::close(output_);
}

ProcessMemory ServedModel::memory() const {
  const std::string folder = fmt::format("/proc/{}/", pid_);
  return {.resident_bytes = kilobytes_of(folder + "status", "VmRSS:"),
          .proportional_bytes = kilobytes_of(folder + "smaps_rollup", "Pss:")};
}

nlohmann::json ServedModel::status() const {
  return nlohmann::json::parse(HttpClient(port_).ask("GET", "/status").body);
}

void ServedModel::wait_until_idle() const {
  for (;;) {
    const nlohmann::json requests = status().at("requests");
    if (requests.at("running") == 0 && requests.at("queued") == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

double ServedModel::metric(std::string_view name) const {
  const std::string text = HttpClient(port_).ask("GET", "/metrics").body;
  const size_t at = text.find(fmt::format("\n{} ", name));
  if (at == std::string::npos) give_up(fmt::format("/metrics has no {}", name));
  return std::stod(text.substr(at + name.size() + 2));
}

HttpClient::HttpClient(uint16_t port) {
  socket_.connect({asio::ip::address_v4::loopback(), port});
  socket_.set_option(asio::ip::tcp::no_delay(true));
}

HttpAnswer HttpClient::ask(std::string_view method, std::string_view path, std::string body) {
  http::request<http::string_body> request;
  request.method_string({method.data(), method.size()});
  request.target({path.data(), path.size()});
  request.set(http::field::host, "localhost");
  request.body() = std::move(body);
  request.prepare_payload();
  http::write(socket_, request);
  http::response_parser<http::string_body> response;
  response.body_limit(boost::none);
  http::read(socket_, buffer_, response);
  return {.status = response.get().result_int(), .body = std::move(response.get().body())};
}

void HttpClient::send(std::string_view bytes) {
  boost::system::error_code ignored;
  asio::write(socket_, asio::buffer(bytes.data(), bytes.size()), ignored);
}

bool HttpClient::receive_some() {
  std::array<char, 4096> bytes{};
  boost::system::error_code error;
  return socket_.read_some(asio::buffer(bytes), error) > 0;
}

void HttpClient::reset() {
  boost::system::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

std::string request_text(std::string_view path, const nlohmann::json& body) {
  const std::string text = body.dump();
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
      path, text.size(), text);
}

}  // namespace deltafin::bench
