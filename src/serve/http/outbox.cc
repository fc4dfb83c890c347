#include "serve/http/outbox.h"

#include <exception>
#include <utility>

#include "serve/api/api_error.h"
#include "serve/api/json_text.h"

namespace deltafin::serve {

Outbox::Outbox(std::shared_ptr<EventLoop> loop, ResponseForm form, Task wake)
    : loop_(std::move(loop)), form_(std::move(form)), wake_(std::move(wake)) {}

void Outbox::wake() {
  if (!std::exchange(wake_posted_, true)) loop_->post(wake_);
}

void Outbox::send(unsigned status, std::string_view content_type, std::string_view body,
                  const HeaderList& more) {
  const std::lock_guard lock(mutex_);
  if (gone_ || phase_ != Phase::Waiting) return;
  waiting_ = response_head(form_, status, content_type, body.size(), more);
  if (!form_.head_only && has_body(status)) waiting_.append(body);
  phase_ = Phase::Ended;
  wake();
}

void Outbox::stream(unsigned status, std::string_view content_type, StreamSource source,
                    const HeaderList& more) {
  const std::lock_guard lock(mutex_);
  if (gone_ || phase_ != Phase::Waiting) return;
  waiting_ = response_head(form_, status, content_type, std::nullopt, more);
  const bool is_bodiless = form_.head_only || !has_body(status);
  phase_ = is_bodiless ? Phase::Ended : Phase::Streaming;
  if (!is_bodiless) source_ = std::move(source);
  wake();
}

void Outbox::has_more() {
  const std::lock_guard lock(mutex_);
  if (!gone_ && phase_ == Phase::Streaming) wake();
}

void Outbox::drop() {
  send(500, kJson,
       to_json({.status = 500,
                .message = "the server gave no answer to this request",
                .type = "server_error"}),
       {});
}

void Outbox::on_gone(Task callback) {
  {
    const std::lock_guard lock(mutex_);
    if (is_over()) return;
    if (!gone_) return on_gone_.push_back(std::move(callback));
  }
  if (!loop_->post(callback)) callback();
}

Outbox::Phase Outbox::take(std::string& bytes) {
  std::vector<Task> over;  // destroyed without the lock: a callback may hold the last reply
  std::unique_lock lock(mutex_);
  wake_posted_ = false;
  bytes.swap(waiting_);
  if (bytes.empty() && phase_ == Phase::Streaming) {
    lock.unlock();
    const Phase phase = ask_source(bytes);
    lock.lock();
    phase_ = phase;
  }
  if (is_over()) over.swap(on_gone_);
  return phase_;
}

// Without the lock: whoever has the stream may call us with one of his own. Nobody else changes the
// source, nor the phase, once it streams.
Outbox::Phase Outbox::ask_source(std::string& bytes) {
  std::optional<std::string> piece;
  bool is_broken = false;
  try {
    piece = source_();
  } catch (const std::exception&) {
    is_broken = true;
  }
  if (piece) {
    if (form_.http_1_1 && !piece->empty())
      append_chunk(*piece, bytes);
    else
      bytes = *std::move(piece);
    return Phase::Streaming;
  }
  source_ = {};
  if (is_broken) return Phase::Broken;
  if (form_.http_1_1) bytes = kLastChunk;
  return Phase::Ended;
}

void Outbox::close() {
  std::vector<Task> callbacks;
  StreamSource source;  // dropped without the lock, too
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    waiting_ = {};
    source.swap(source_);
    callbacks.swap(on_gone_);
    if (is_over()) return;
  }
  for (const Task& callback : callbacks) callback();
}

void Reply::send(unsigned status, std::string content_type, std::string body, HeaderList more) {
  state_->outbox->send(status, content_type, body, more);
}

void Reply::stream(unsigned status, std::string content_type, StreamSource source,
                   HeaderList more) {
  state_->outbox->stream(status, content_type, std::move(source), more);
}

void Reply::has_more() { state_->outbox->has_more(); }

void Reply::on_gone(std::function<void()> callback) {
  state_->outbox->on_gone(std::move(callback));
}

}  // namespace deltafin::serve
