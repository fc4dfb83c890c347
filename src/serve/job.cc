#include "serve/job.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "serve/api/generation_response.h"
#include "serve/api/json_text.h"

namespace deltafin::serve {

namespace {

// So many bytes of a stream are handed over at a time, or one event.
constexpr size_t kBytesAtOnce = 64 << 10;

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
  answer_.pieces.push_back(std::move(event));
  for (Listener& listener : listeners_) listener.reply.has_more();
}

void Job::comment(const std::string& event) {
  const std::scoped_lock lock(mutex_);
  for (Listener& listener : listeners_) {
    if (listener.reading == nullptr || listener.reading->next < answer_.pieces.size()) continue;
    listener.reading->comment = event;
    listener.reply.has_more();
  }
}

void Job::end_stream() {
  const std::scoped_lock lock(mutex_);
  CHECK(!ended_ && answer_.form == AnswerForm::Stream);
  std::vector<Listener> listeners = std::move(listeners_);
  end();
  for (Listener& listener : listeners) listener.reply.has_more();
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
    std::shared_ptr<Reading> reading;
    if (answer_.form == AnswerForm::Stream) {
      reading = std::make_shared<Reading>(after);
      reply.stream(
          200, "text/event-stream; charset=utf-8",
          [job = shared_from_this(), reading] { return job->read(*reading); },
          id_header(answer_.id));
    } else if (ended_) {
      reply.send(answer_.status, kJson, answer_.pieces.front(), id_header(answer_.id));
    }
    if (ended_) return;
    number = next_listener_++;
    listeners_.push_back({number, std::move(reply), std::move(reading)});
  }
  watched.on_gone([weak = weak_from_this(), number] {
    if (const std::shared_ptr<Job> job = weak.lock()) job->forget(number);
  });
}

std::optional<std::string> Job::read(Reading& reading) const {
  const std::scoped_lock lock(mutex_);
  if (ended_ && reading.next >= answer_.pieces.size()) return std::nullopt;
  std::string bytes = std::exchange(reading.comment, {});
  while (reading.next < answer_.pieces.size() && bytes.size() < kBytesAtOnce)
    bytes += answer_.pieces[reading.next++];
  return bytes;
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
