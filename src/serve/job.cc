#include "serve/job.h"

#include <algorithm>

#include "base/check.h"
#include "serve/api/generation_response.h"

namespace deltafin::serve {

namespace {

constexpr const char* kJson = "application/json";

HeaderList id_header(const std::string& id) { return {{"X-Request-Id", id}}; }

}  // namespace

size_t FinishedAnswer::byte_count() const {
  size_t count = 2 * id.size();  // it is a key, too
  for (const std::string& piece : pieces) count += sizeof(piece) + piece.capacity();
  return count;
}

bool Job::ended() const {
  const std::scoped_lock lock(mutex_);
  return ended_;
}

void Job::add_event(std::string event) {
  const std::scoped_lock lock(mutex_);
  CHECK(!ended_ && answer_.form == AnswerForm::Stream);
  for (Listener& listener : listeners_) listener.reply.write(event);
  answer_.pieces.push_back(std::move(event));
}

void Job::comment(const std::string& event) {
  const std::scoped_lock lock(mutex_);
  if (answer_.form != AnswerForm::Stream) return;
  for (Listener& listener : listeners_) listener.reply.write(event);
}

void Job::end_stream() {
  const std::scoped_lock lock(mutex_);
  CHECK(!ended_ && answer_.form == AnswerForm::Stream);
  for (Listener& listener : listeners_) listener.reply.end();
  end();
}

// What only a job that goes on needs makes room: finished ones are kept for a while.
void Job::end() {
  ended_ = true;
  answer_.pieces.shrink_to_fit();
  listeners_ = {};
  on_abandoned_ = {};
}

void Job::end_whole(unsigned status, std::string body) {
  const std::scoped_lock lock(mutex_);
  CHECK(!ended_ && answer_.form == AnswerForm::Whole);
  answer_.status = status;
  for (Listener& listener : listeners_)
    listener.reply.send(status, kJson, body, id_header(answer_.id));
  answer_.pieces.push_back(std::move(body));
  end();
}

void Job::fail(const ApiError& error) {
  if (form() == AnswerForm::Whole) return end_whole(error.status, to_json(error));
  add_event(error_event(error));
  end_stream();
}

void Job::attach(Reply reply, size_t after) {
  Reply watched = reply;
  uint64_t number = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (answer_.form == AnswerForm::Whole) {
      if (ended_)
        return reply.send(answer_.status, kJson, answer_.pieces.front(), id_header(answer_.id));
    } else {
      reply.begin(200, "text/event-stream; charset=utf-8", id_header(answer_.id));
      for (size_t i = after; i < answer_.pieces.size(); ++i) reply.write(answer_.pieces[i]);
      if (ended_) return reply.end();
    }
    number = next_listener_++;
    listeners_.push_back({number, std::move(reply)});
  }
  watched.on_gone([weak = weak_from_this(), number] {
    if (const std::shared_ptr<Job> job = weak.lock()) job->forget(number);
  });
}

void Job::on_abandoned(std::function<void()> callback) {
  const std::scoped_lock lock(mutex_);
  on_abandoned_ = std::move(callback);
}

void Job::forget(uint64_t listener) {
  std::function<void()> abandoned;
  {
    const std::scoped_lock lock(mutex_);
    if (std::erase_if(listeners_, [&](const Listener& l) { return l.number == listener; }) == 0)
      return;
    if (listeners_.empty() && !ended_) abandoned = on_abandoned_;
  }
  if (abandoned) abandoned();
}

FinishedAnswer Job::finished() const {
  const std::scoped_lock lock(mutex_);
  return ended_ ? answer_ : FinishedAnswer{.id = answer_.id, .form = answer_.form};
}

}  // namespace deltafin::serve
