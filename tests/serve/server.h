// deltafin serve as its clients meet it: the built program on the bundled model, real sockets.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/process.h"
#include "serve/http/test_client.h"

namespace deltafin::test {

using nlohmann::json;
using serve::TestClient;

// One answer, its headers and what a chunked body carries.
struct Answer {
  int status = 0;
  std::string head, body;

  json parsed() const { return json::parse(body, nullptr, false); }
  std::string text() const { return parsed()["choices"][0]["text"]; }
};

// Whatever comes until the server closes. An answer may take its time on a busy machine.
std::string rest_of(TestClient& client);
std::string dechunked(std::string_view body);
Answer to_answer(const std::string& raw);

// The JSON of each event; what is none, such as [DONE], as a string.
std::vector<json> events_of(const std::string& body);
std::string text_of(const std::vector<json>& events);

inline constexpr const char* kPrompt = "And the LORD said unto Moses,";
json completion(uint64_t max_tokens, bool stream = false);

// A server of the bundled model, or of another folder.
class Server {
 public:
  explicit Server(std::vector<std::string> more = {}, const std::string& model = "demo");

  uint16_t port() const { return port_; }
  static std::string request(const std::string& method, const std::string& path,
                             const std::string& body, const std::string& headers = "");
  Answer ask(const std::string& method, const std::string& path, const std::string& body,
             const std::string& headers = "") const;
  Answer get(const std::string& path) const { return ask("GET", path, ""); }
  Answer complete(const json& body, const std::string& headers = "") const {
    return ask("POST", "/v1/completions", body.dump(), headers);
  }
  Answer chat(const json& body, const std::string& headers = "") const {
    return ask("POST", "/v1/chat/completions", body.dump(), headers);
  }
  json status() const { return get("/status").parsed(); }
  bool is_idle() const;

  uint64_t resident_bytes() const { return status_of_process("VmRSS"); }
  uint64_t peak_resident_bytes() const { return status_of_process("VmHWM"); }

  static bool wait_for(const std::function<bool()>& what);

  Outcome end(int signal = SIGTERM);
  void signal(int number) const { process_.signal(number); }
  Outcome finish() { return process_.finish(); }

 private:
  uint64_t status_of_process(const char* field) const;

  Process process_;
  uint16_t port_ = 0;
};

}  // namespace deltafin::test
