// One request that generates, and its answer as it grows. It is kept whole, so that a client that
// lost its connection can take the answer up where it was.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api/api_error.h"
#include "serve/http/http_server.h"

namespace deltafin::serve {

// One JSON object at the end, or server-sent events as they come.
enum class AnswerForm : uint8_t { Whole, Stream };

// What there is to keep of an answer that is complete.
struct FinishedAnswer {
  std::string id;
  AnswerForm form = AnswerForm::Whole;
  unsigned status = 200;
  std::vector<std::string> pieces = {};  // events, or the one body

  size_t byte_count() const;  // of memory
};

// Thread-safe; lives in a shared_ptr. The engine's thread makes the answer, the server's lets
// clients listen.
class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(std::string id, AnswerForm form) : answer_{.id = std::move(id), .form = form} {}
  // One that is finished, from a file.
  explicit Job(FinishedAnswer answer) : answer_(std::move(answer)), ended_(true) {}

  const std::string& id() const { return answer_.id; }
  AnswerForm form() const { return answer_.form; }
  bool ended() const;

  // Streams only: one more event, complete with its blank line.
  void add_event(std::string event);
  // To those who listen now and have read everything, and not kept: a stream's keep-alive.
  void comment(const std::string& event);
  // The end. A stream has had its last event; nothing more comes.
  void end_stream();
  void end_whole(unsigned status, std::string body);
  // The end that nobody wished. A stream gets an event, and no [DONE].
  void fail(const ApiError& error);

  // The answer from its beginning, or of a stream from behind the first `after` events, and what is
  // added later. A stream is read from here as fast as its client takes it.
  void attach(Reply reply, size_t after);
  // Called on the thread that learns it, each time that the last listener has gone before the end.
  void on_abandoned(std::function<void()> callback);

  // Empty pieces before the end.
  FinishedAnswer finished() const;

 private:
  // How far a client has read a stream, and what is for him alone.
  struct Reading {
    size_t next = 0;  // event
    std::string comment = {};
  };
  struct Listener {
    uint64_t number = 0;
    Reply reply;
    std::shared_ptr<Reading> reading = {};  // of a stream
  };

  void forget(uint64_t listener);
  // What comes next for a reader, some events at a time; nothing when that was all.
  std::optional<std::string> read(Reading& reading) const;
  void end();  // with the lock

  mutable std::mutex mutex_;
  FinishedAnswer answer_;
  bool ended_ = false;
  std::vector<Listener> listeners_;
  uint64_t next_listener_ = 0;
  std::function<void()> on_abandoned_;
};

}  // namespace deltafin::serve
