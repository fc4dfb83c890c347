// What one answer has to say: given from any thread, fetched by its connection.
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
    Broken      // it ends in the middle
  };

  // `wake` is posted to the loop when there is something to do for the connection.
  Outbox(std::shared_ptr<EventLoop> loop, ResponseForm form, Task wake);

  // Those of Reply, on any thread.
  void send(unsigned status, std::string_view content_type, std::string_view body,
            const HeaderList& more);
  void stream(unsigned status, std::string_view content_type, StreamSource source,
              const HeaderList& more);
  void has_more();
  void on_gone(Task callback);
  // Nobody can say any more.
  void drop();

  // Those of the connection, on its loop's thread.
  //
  // Moves what waits to `bytes`, which must be empty, or what the source has when nothing waits;
  // tells the phase that leaves the answer in.
  Phase take(std::string& bytes);
  // The client has gone. Calls back unless the answer was complete.
  void close();

 private:
  Phase ask_source(std::string& bytes);
  bool is_over() const { return phase_ == Phase::Ended || phase_ == Phase::Broken; }
  void wake();

  const std::shared_ptr<EventLoop> loop_;
  const ResponseForm form_;
  const Task wake_;

  std::mutex mutex_;
  Phase phase_ = Phase::Waiting;
  bool gone_ = false;         // close() has been here
  bool wake_posted_ = false;  // and not yet taken
  std::string waiting_;
  StreamSource source_;  // called and dropped by the connection only
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
