#include "serve/http/outbox.h"

#include <utility>

#include "serve/api/api_error.h"

namespace deltafin::serve {

Outbox::Outbox(std::shared_ptr<EventLoop> loop, AnswerForm form, size_t stream_bytes, Task wake)
    : loop_(std::move(loop)),
      form_(std::move(form)),
      stream_bytes_(stream_bytes),
      wake_(std::move(wake)) {}

void Outbox::wake() {
  if (!std::exchange(wake_posted_, true)) loop_->post(wake_);
}

void Outbox::finish(Phase phase) {
  phase_ = phase;
  wake();
}

void Outbox::send(unsigned status, std::string_view content_type, std::string_view body,
                  const HeaderList& more) {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  if (phase_ == Phase::Streaming) return finish(Phase::Broken);
  waiting_ = response_head(form_, status, content_type, body.size(), more);
  if (!form_.head_only && has_body(status)) waiting_.append(body);
  finish(Phase::Ended);
}

void Outbox::begin(unsigned status, std::string_view content_type, const HeaderList& more) {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  if (phase_ == Phase::Streaming) return finish(Phase::Broken);
  waiting_ = response_head(form_, status, content_type, std::nullopt, more);
  bodiless_ = form_.head_only || !has_body(status);
  phase_ = Phase::Streaming;
  wake();
}

bool Outbox::write(std::string_view piece) {
  const std::lock_guard lock(mutex_);
  if (over() || phase_ == Phase::Waiting) return false;
  if (bodiless_ || piece.empty()) return true;
  const size_t waiting_bytes = waiting_.size() + taken_bytes_;
  if (waiting_bytes > 0 && waiting_bytes + piece.size() > stream_bytes_) {
    gone_ = true;
    waiting_ = {};
    // Even if a wake is on its way: a connection whose output is stuck does not take.
    loop_->post(wake_);
    return false;
  }
  if (form_.http_1_1)
    append_chunk(piece, waiting_);
  else
    waiting_.append(piece);
  wake();
  return true;
}

void Outbox::end() {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  if (phase_ == Phase::Waiting) return finish(Phase::Broken);
  if (form_.http_1_1 && !bodiless_) waiting_.append(kLastChunk);
  finish(Phase::Ended);
}

void Outbox::abort() {
  const std::lock_guard lock(mutex_);
  if (!over()) finish(Phase::Broken);
}

void Outbox::drop() {
  {
    const std::lock_guard lock(mutex_);
    if (over()) return;
    if (phase_ == Phase::Streaming) return finish(Phase::Broken);
  }
  send(500, "application/json",
       to_json({.status = 500,
                .message = "the server gave no answer to this request",
                .type = "server_error"}),
       {});
}

void Outbox::on_gone(Task callback) {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::Ended || phase_ == Phase::Broken) return;
    if (!closed_) return on_gone_.push_back(std::move(callback));
  }
  if (!loop_->post(callback)) callback();
}

bool Outbox::gone() const {
  const std::lock_guard lock(mutex_);
  return gone_;
}

Outbox::Phase Outbox::take(std::string& bytes) {
  std::vector<Task> ended;  // destroyed without the lock: a callback may hold the last reply
  const std::lock_guard lock(mutex_);
  wake_posted_ = false;
  if (phase_ == Phase::Ended || phase_ == Phase::Broken) ended.swap(on_gone_);
  bytes.swap(waiting_);
  taken_bytes_ = bytes.size();
  return gone_ ? Phase::GivenUp : phase_;
}

void Outbox::sent() {
  const std::lock_guard lock(mutex_);
  taken_bytes_ = 0;
}

void Outbox::close() {
  std::vector<Task> callbacks;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    gone_ = true;
    waiting_ = {};
    callbacks.swap(on_gone_);
    if (phase_ == Phase::Ended || phase_ == Phase::Broken) return;
  }
  for (const Task& callback : callbacks) callback();
}

void Reply::send(unsigned status, std::string content_type, std::string body, HeaderList more) {
  state_->outbox->send(status, content_type, body, more);
}

void Reply::begin(unsigned status, std::string content_type, HeaderList more) {
  state_->outbox->begin(status, content_type, more);
}

bool Reply::write(std::string piece) { return state_->outbox->write(piece); }
void Reply::end() { state_->outbox->end(); }
void Reply::abort() { state_->outbox->abort(); }

void Reply::on_gone(std::function<void()> callback) {
  state_->outbox->on_gone(std::move(callback));
}

bool Reply::gone() const { return state_->outbox->gone(); }

}  // namespace deltafin::serve
