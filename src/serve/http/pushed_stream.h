// For tests: a streamed answer that is written piece by piece, each of which becomes a chunk.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "serve/http/http_server.h"

namespace deltafin::serve {

class PushedStream {
 public:
  explicit PushedStream(Reply reply, std::string content_type = "text/event-stream")
      : reply_(std::move(reply)) {
    reply_.stream(200, std::move(content_type), [queue = queue_] { return queue->next(); });
  }

  void write(std::string piece) {
    change([&](Queue& queue) { queue.pieces.push_back(std::move(piece)); });
  }
  void end() {
    change([](Queue& queue) { queue.ended = true; });
  }
  // The source fails.
  void break_off() {
    change([](Queue& queue) { queue.broken = true; });
  }

 private:
  struct Queue {
    std::mutex mutex;
    std::deque<std::string> pieces;
    bool ended = false, broken = false;

    std::optional<std::string> next() {
      const std::scoped_lock lock(mutex);
      if (pieces.empty()) {
        if (broken) throw std::runtime_error("broken");
        return ended ? std::nullopt : std::optional<std::string>("");
      }
      std::string piece = std::move(pieces.front());
      pieces.pop_front();
      return piece;
    }
  };
  template <class Change>
  void change(const Change& change) {
    {
      const std::scoped_lock lock(queue_->mutex);
      change(*queue_);
    }
    reply_.has_more();
  }

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  Reply reply_;
};

}  // namespace deltafin::serve
