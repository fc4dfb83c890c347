#include "serve/server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <regex>
#include <thread>

namespace deltafin::test {

namespace {

std::vector<std::string> arguments_of(const std::string& model, std::vector<std::string> more) {
  std::vector<std::string> all = {"serve", model, "--port", "0"};
  if (std::ranges::find(more, "--memory") == more.end())
    more.insert(more.end(), {"--memory", "600MB"});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

std::string rest_of(TestClient& client) {
  while (client.receive(std::chrono::minutes(1))) {
  }
  return client.received();
}

std::string dechunked(std::string_view body) {
  std::string whole;
  for (;;) {
    const size_t end = body.find("\r\n");
    if (end == std::string_view::npos) return whole;
    const size_t size = std::stoull("0" + std::string(body.substr(0, end)), nullptr, 16);
    if (size == 0 || body.size() < end + 2 + size) return whole;
    whole += body.substr(end + 2, size);
    body.remove_prefix(std::min(body.size(), end + 4 + size));
  }
}

Answer to_answer(const std::string& raw) {
  const size_t end = std::min(raw.find("\r\n\r\n"), raw.size());
  Answer answer{.head = raw.substr(0, end), .body = raw.substr(std::min(end + 4, raw.size()))};
  if (raw.size() > 12) answer.status = std::atoi(raw.c_str() + 9);
  if (answer.head.find("chunked") != std::string::npos) answer.body = dechunked(answer.body);
  return answer;
}

std::vector<json> events_of(const std::string& body) {
  std::vector<json> events;
  for (const std::string& line : lines_of(body)) {
    if (!line.starts_with("data: ")) continue;
    json event = json::parse(line.substr(6), nullptr, false);
    events.push_back(event.is_discarded() ? json(line.substr(6)) : std::move(event));
  }
  return events;
}

std::string text_of(const std::vector<json>& events) {
  std::string text;
  for (const json& event : events) {
    if (!event.is_object() || !event.contains("choices")) continue;
    for (const json& choice : event["choices"]) text += choice["text"].get<std::string>();
  }
  return text;
}

json completion(uint64_t max_tokens, bool stream) {
  return {{"prompt", kPrompt}, {"max_tokens", max_tokens}, {"stream", stream}};
}

Server::Server(std::vector<std::string> more, const std::string& model)
    : process_({.arguments = arguments_of(model, std::move(more))}) {
  std::smatch found;
  if (!process_.wait_for_output("/\n")) ADD_FAILURE() << "it does not listen";
  const std::string& out = process_.output_so_far();
  if (std::regex_search(out, found, std::regex("http://127.0.0.1:([0-9]+)/")))
    port_ = static_cast<uint16_t>(std::stoi(found[1]));
  EXPECT_TRUE(wait_for([&] { return get("/health").status == 200; })) << "it does not load";
}

std::string Server::request(const std::string& method, const std::string& path,
                            const std::string& body, const std::string& headers) {
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

Answer Server::ask(const std::string& method, const std::string& path, const std::string& body,
                   const std::string& headers) const {
  TestClient client(port_);
  client.send(request(method, path, body, headers));
  return to_answer(rest_of(client));
}

bool Server::is_idle() const { return status()["requests"]["running"] == 0; }

uint64_t Server::status_of_process(const char* field) const {
  const std::string status = read_file("/proc/" + std::to_string(process_.id()) + "/status");
  std::smatch found;
  EXPECT_TRUE(
      std::regex_search(status, found, std::regex(std::string(field) + ":\\s+([0-9]+) kB")));
  return std::stoull(found[1]) * 1024;
}

bool Server::wait_for(const std::function<bool()>& what) {
  for (int i = 0; i < 1000; ++i) {
    if (what()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

Outcome Server::end(int signal) {
  process_.signal(signal);
  return process_.finish();
}

}  // namespace deltafin::test
