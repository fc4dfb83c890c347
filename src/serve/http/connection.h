// One connection: requests one after the other, each answered before the next is looked at.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "serve/api/api_error.h"
#include "serve/http/access.h"
#include "serve/http/event_loop.h"
#include "serve/http/http_server.h"
#include "serve/http/outbox.h"
#include "serve/http/request_reader.h"

namespace deltafin::serve {

class Connection;

// What all connections share. On the loop's thread, but for the counters.
struct ConnectionHub {
  std::shared_ptr<EventLoop> loop;
  std::shared_ptr<EventLoop> aside;  // of the thread that looks at large bodies
  HttpLimits limits;
  AccessRules rules;
  HttpServer::Handler handler;

  std::set<std::shared_ptr<Connection>> open;
  size_t answering = 0;     // connections whose answer is not yet complete
  uint64_t body_bytes = 0;  // of requests that nobody has looked at yet
  bool draining = false;
  std::function<void()> answer_over = [] {};         // `answering` has sunk
  std::array<char, size_t{64} << 10> received = {};  // by one read

  std::atomic<uint64_t> connections_now = 0, connections = 0, refused = 0;
  std::atomic<uint64_t> requests = 0, bytes_in = 0, bytes_out = 0;
  std::atomic<bool> closing = false;  // what still waits aside is not looked at
};

//            first byte           head              whole
//   Idle ------------------> Head ----> Body --------------------> Answering --+
//    ^                         |         |                          |  |  |    |
//    |                         +---------+--- error, refused -------+  |  |    | Connection: close,
//    +------------------ answer complete, keep-alive ------------------+  |    | error, broken off
//                                                                         |    v
//   Closed <--- the client goes, time limits -----------------------------+  Lingering ---> Closed
//
// Lingering: everything has been said and our side is shut; what still arrives is thrown away, for
// to close with unread bytes would destroy what the client has not read yet.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ConnectionHub& hub, std::unique_ptr<Watch> watch);

  void start();
  // Says why nothing is read from it.
  void refuse(ApiError error);
  // Closes unless an answer is in progress, and after that.
  void drain();
  void close();

 private:
  enum class State : uint8_t { Idle, Head, Body, Answering, Lingering, Closed };

  void watch_input();
  void read_input();
  void ask_whether_gone();
  void process();
  void begin_body();
  bool count_body();
  void answer();
  void answer_aside(HttpRequest request, std::shared_ptr<Outbox> outbox, uint64_t counted);
  std::shared_ptr<Outbox> begin_answer();
  void flush();
  void end_answer();
  void leave_answer();
  void linger();
  void reset();
  void limit(std::chrono::milliseconds time);
  void time_over();

  ConnectionHub& hub_;
  const std::unique_ptr<Watch> watch_;
  Timer timer_;
  State state_ = State::Idle;

  std::string input_;  // received and not yet read
  bool input_ended_ = false;
  bool watching_input_ = false, watching_output_ = false, watching_failure_ = false;

  std::unique_ptr<RequestReader> reader_;
  ResponseForm form_;
  bool preflight_ = false;
  uint64_t body_counted_ = 0;  // in hub_.body_bytes
  uint64_t body_step_ = 0;     // what had come when the time limit was set

  std::shared_ptr<Outbox> outbox_;
  bool answer_begun_ = false;  // something of it has been taken
  std::string output_;
  size_t output_sent_ = 0;
};

}  // namespace deltafin::serve
