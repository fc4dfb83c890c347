// What one answer still has to say: filled from any thread, emptied by its connection.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/http/event_loop.h"
#include "serve/http/http_server.h"
#include "serve/http/response_head.h"

namespace deltafin::serve {

class Outbox {
 public:
  using Task = std::function<void()>;
  enum class Phase : uint8_t {
    Waiting,    // for a head
    Streaming,  // more may come
    Ended,      // complete
    Broken,     // it ends in the middle
    GivenUp     // the client reads too slowly, or has gone
  };

  // `wake` is posted to the loop when there is something to do for the connection. At most
  // `stream_bytes` of a stream wait here.
  Outbox(std::shared_ptr<EventLoop> loop, AnswerForm form, size_t stream_bytes, Task wake);

  // Those of Reply, on any thread.
  void send(unsigned status, std::string_view content_type, std::string_view body,
            const HeaderList& more);
  void begin(unsigned status, std::string_view content_type, const HeaderList& more);
  bool write(std::string_view piece);
  void end();
  void abort();
  void on_gone(Task callback);
  bool gone() const;
  // Nobody can say any more.
  void drop();

  // Those of the connection, on its loop's thread.
  //
  // Moves what waits to `bytes`, which must be empty, and tells the phase it leaves the answer in.
  Phase take(std::string& bytes);
  // What was taken has been handed to the system.
  void sent();
  // The client has gone. Calls back unless the answer was complete.
  void close();

 private:
  bool over() const { return gone_ || phase_ == Phase::Ended || phase_ == Phase::Broken; }
  void finish(Phase phase);
  void wake();

  const std::shared_ptr<EventLoop> loop_;
  const AnswerForm form_;
  const size_t stream_bytes_;
  const Task wake_;

  mutable std::mutex mutex_;
  Phase phase_ = Phase::Waiting;
  bool bodiless_ = false;  // HEAD, or a status without a body
  bool gone_ = false;
  bool closed_ = false;       // close() has been here
  bool wake_posted_ = false;  // and not yet taken
  std::string waiting_;
  size_t taken_bytes_ = 0;  // not yet handed to the system
  std::vector<Task> on_gone_;
};

// What the handles share; the last one drops it.
class Reply::State {
 public:
  explicit State(std::shared_ptr<Outbox> to) : outbox(std::move(to)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { outbox->drop(); }

  const std::shared_ptr<Outbox> outbox;
};

}  // namespace deltafin::serve
