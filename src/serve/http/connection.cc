#include "serve/http/connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "serve/api/json_text.h"

namespace deltafin::serve {
namespace {

// After so much, other connections have their turn.
constexpr size_t kTurnBytes = 256 << 10;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

void set_option(int socket, int level, int name, int value) {
  // Whatever is not supported is not needed for correctness.
  (void)::setsockopt(socket, level, name, &value, sizeof value);
}

ApiError too_slow(std::string what) {
  return {.status = 408, .message = std::move(what), .type = "timeout", .code = "request_timeout"};
}

void call(const HttpServer::Handler& handler, HttpRequest request,
          const std::shared_ptr<Outbox>& outbox) {
  try {
    handler(std::move(request), Reply(std::make_shared<Reply::State>(outbox)));
  } catch (const std::exception&) {
    // The reply was dropped, which the client is told. Nothing a request does ends the server.
  }
}

ApiError busy(std::string what) {
  return {.status = 503, .message = std::move(what), .type = "server_busy", .code = "server_busy"};
}

}  // namespace

Connection::Connection(ConnectionHub& hub, std::unique_ptr<Watch> watch)
    : hub_(hub), watch_(std::move(watch)), timer_(*hub.loop) {
  const int socket = watch_->descriptor();
  // Each piece of a stream leaves at once.
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  // A machine that vanishes says nothing: it must be asked now and then, and not be waited for.
  const auto milliseconds = static_cast<int>(hub_.limits.gone_time.count());
  const int seconds = std::max(milliseconds / 3000, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds);
}

void Connection::start() {
  limit(hub_.limits.header_time);
  watch_input();
}

// By value: the error may be the reader's, which is gone after begin_answer().
void Connection::refuse(ApiError error) {
  form_.keep_alive = false;
  begin_answer()->send(error.status, kJson, to_json(error), {});
  watch_input();
}

void Connection::drain() {
  if (state_ == State::Idle || state_ == State::Head || state_ == State::Body) close();
}

// --- input -------------------------------------------------------------------------------------

void Connection::watch_input() {
  if (state_ == State::Closed) return;
  // While a request is answered, the next ones wait in the system when there is too much of them;
  // but that the client goes must be seen.
  const bool full = state_ == State::Answering && input_.size() >= hub_.limits.header_bytes;
  if (input_ended_ || full) {
    if (std::exchange(watching_failure_, true)) return;
    watch_->when_failed([self = shared_from_this()] { self->close(); });
  } else {
    if (std::exchange(watching_input_, true)) return;
    watch_->when_readable([self = shared_from_this()] {
      self->watching_input_ = false;
      self->read_input();
      self->watch_input();
    });
  }
}

void Connection::read_input() {
  const ssize_t received =
      ::recv(watch_->descriptor(), hub_.received.data(), hub_.received.size(), MSG_DONTWAIT);
  if (received < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) close();
    return;
  }
  hub_.bytes_in += static_cast<uint64_t>(received);
  if (received == 0) {
    input_ended_ = true;
    // What is to be answered is answered still: the client may have shut its sending side only.
    return state_ == State::Answering ? ask_whether_gone() : close();
  }
  if (state_ == State::Lingering) return;
  input_.append(hub_.received.data(), static_cast<size_t>(received));
  process();
}

// A client that closed looks like one that shut its sending side, until something is sent: the
// former's system answers with a reset. An interim response is what every client of HTTP/1.1 has to
// accept at any time before the answer; in a stream, its next piece does the same.
void Connection::ask_whether_gone() {
  if (answer_begun_ || !form_.http_1_1) return;
  output_ += kContinue;
  flush();
}

void Connection::process() {
  while (state_ == State::Idle || state_ == State::Head || state_ == State::Body) {
    if (state_ == State::Idle) {
      // Some clients send an empty line behind a body.
      input_.erase(0, std::min(input_.find_first_not_of("\r\n"), input_.size()));
      if (input_.empty()) {
        input_ = {};  // its memory, too: most connections are idle
        return;
      }
      reader_ = std::make_unique<RequestReader>(hub_.limits);
      form_ = {};
      state_ = State::Head;
      limit(hub_.limits.header_time);
    }
    size_t used = 0;
    const RequestReader::Step step = reader_->read(input_, used);
    input_.erase(0, used);
    if (step == RequestReader::Step::Wrong) return refuse(reader_->error());
    if (step == RequestReader::Step::Head) {
      begin_body();
      continue;
    }
    if (!count_body())
      return refuse(busy("the server is receiving too many large requests: try again"));
    if (step == RequestReader::Step::NeedMore) return;
    answer();
  }
}

void Connection::begin_body() {
  state_ = State::Body;
  body_step_ = 0;
  limit(hub_.limits.body_time);
  form_.http_1_1 = reader_->http_1_1();
  form_.keep_alive = reader_->keep_alive();
  form_.head_only = reader_->head().method == "HEAD";
  // Before the body: strangers get no memory of ours.
  Access access = check_access(hub_.rules, reader_->head());
  form_.headers = std::move(access.headers);
  preflight_ = access.preflight;
  if (access.refusal) return refuse(*access.refusal);
  if (reader_->expects_continue() && input_.empty()) {
    output_ += kContinue;
    flush();
  }
}

bool Connection::count_body() {
  const uint64_t received = reader_->body_received();
  hub_.body_bytes += received - body_counted_;
  body_counted_ = received;
  if (received - body_step_ >= hub_.limits.body_step) {
    body_step_ = received;
    limit(hub_.limits.body_time);
  }
  return hub_.body_bytes <= hub_.limits.body_bytes_of_all;
}

// --- answers -----------------------------------------------------------------------------------

void Connection::answer() {
  HttpRequest request = reader_->take();
  const bool is_large = !preflight_ && request.body.size() > hub_.limits.body_bytes_at_once;
  const uint64_t counted = is_large ? std::exchange(body_counted_, 0) : 0;
  const std::shared_ptr<Outbox> outbox = begin_answer();
  ++hub_.requests;
  if (is_large) return answer_aside(std::move(request), outbox, counted);
  if (preflight_) return outbox->send(204, {}, {}, {});
  call(hub_.handler, std::move(request), outbox);
}

// The body counts until somebody has looked at it.
void Connection::answer_aside(HttpRequest request, std::shared_ptr<Outbox> outbox,
                              uint64_t counted) {
  const auto waiting = std::make_shared<HttpRequest>(std::move(request));  // tasks can be copied
  hub_.aside->post([&hub = hub_, waiting, outbox = std::move(outbox), counted] {
    if (hub.closing) return;
    call(hub.handler, std::move(*waiting), outbox);
    hub.loop->post([&hub, counted] { hub.body_bytes -= counted; });
  });
}

std::shared_ptr<Outbox> Connection::begin_answer() {
  reader_.reset();
  hub_.body_bytes -= std::exchange(body_counted_, 0);
  timer_.stop();
  state_ = State::Answering;
  answer_begun_ = false;
  ++hub_.answering;
  outbox_ = std::make_shared<Outbox>(hub_.loop, form_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->flush();
  });
  return outbox_;
}

void Connection::flush() {
  if (state_ == State::Closed) return;
  if (watching_output_) return;
  for (size_t turn = 0; turn < kTurnBytes;) {
    if (output_sent_ == output_.size()) {
      output_.clear();
      output_sent_ = 0;
      if (!outbox_) return;
      const Outbox::Phase phase = outbox_->take(output_);
      if (output_.empty()) {
        timer_.stop();
        if (phase == Outbox::Phase::Ended) end_answer();
        if (phase == Outbox::Phase::Broken) linger();
        return;
      }
      answer_begun_ = true;
    }
    const ssize_t sent = ::send(watch_->descriptor(), output_.data() + output_sent_,
                                output_.size() - output_sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return close();
      break;
    }
    hub_.bytes_out += static_cast<uint64_t>(sent);
    output_sent_ += static_cast<size_t>(sent);
    turn += static_cast<size_t>(sent);
  }
  if (state_ == State::Answering) limit(hub_.limits.write_time);
  watching_output_ = true;
  watch_->when_writable([self = shared_from_this()] {
    self->watching_output_ = false;
    self->flush();
  });
}

void Connection::end_answer() {
  leave_answer();
  if (!form_.keep_alive || hub_.draining) return linger();
  state_ = State::Idle;
  limit(hub_.limits.idle_time);
  process();
  if (state_ != State::Closed && input_ended_ && state_ != State::Answering) return close();
  watch_input();
}

void Connection::leave_answer() {
  outbox_.reset();
  output_ = {};
  output_sent_ = 0;
  --hub_.answering;
  hub_.answer_over();
}

// --- ends --------------------------------------------------------------------------------------

void Connection::linger() {
  if (outbox_) leave_answer();
  if (input_ended_) return close();
  (void)::shutdown(watch_->descriptor(), SHUT_WR);
  state_ = State::Lingering;
  input_ = {};
  limit(hub_.limits.linger_time);
  watch_input();
}

void Connection::reset() {
  // The system would go on offering what the client does not read.
  const ::linger none = {.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(watch_->descriptor(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close();
}

void Connection::close() {
  if (state_ == State::Closed) return;
  const std::shared_ptr<Connection> self = shared_from_this();  // or the last lines had no object
  state_ = State::Closed;
  timer_.stop();
  watch_->close();
  hub_.body_bytes -= std::exchange(body_counted_, 0);
  hub_.open.erase(self);
  --hub_.connections_now;
  if (!outbox_) return;
  outbox_->close();
  leave_answer();
}

void Connection::limit(std::chrono::milliseconds time) {
  timer_.start(time, [self = shared_from_this()] { self->time_over(); });
}

void Connection::time_over() {
  switch (state_) {
    case State::Head:
      return refuse(too_slow("the headers took too long"));
    case State::Body:
      return refuse(too_slow("the body came too slowly"));
    case State::Answering:
      return reset();
    case State::Idle:
    case State::Lingering:
    case State::Closed:
      return close();
  }
}

}  // namespace deltafin::serve
