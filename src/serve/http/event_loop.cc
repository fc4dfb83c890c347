#include "serve/http/event_loop.h"

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace deltafin::serve {

namespace asio = boost::asio;
// The concrete executor: a third less to compile than with the polymorphic one.
using Executor = asio::io_context::executor_type;
using AsioDescriptor = asio::posix::basic_stream_descriptor<Executor>;
using AsioTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, Executor>;

struct EventLoop::Inside {
  asio::io_context context{1};
  // Keeps run() from returning while nothing waits.
  std::optional<asio::executor_work_guard<Executor>> open{context.get_executor()};
  std::mutex mutex;  // of `open`
};

EventLoop::EventLoop() : inside_(std::make_unique<Inside>()) {}
EventLoop::~EventLoop() = default;

void EventLoop::run() { inside_->context.run(); }

bool EventLoop::post(Task task) {
  const std::lock_guard lock(inside_->mutex);
  if (!inside_->open) return false;
  asio::post(inside_->context, std::move(task));
  return true;
}

void EventLoop::close() {
  const std::lock_guard lock(inside_->mutex);
  inside_->open.reset();
}

struct Watch::Inside {
  AsioDescriptor descriptor;

  void wait(AsioDescriptor::wait_type type, EventLoop::Task task) {
    descriptor.async_wait(type,
                          [this, task = std::move(task)](const boost::system::error_code& error) {
                            if (!error && descriptor.is_open()) task();
                          });
  }
};

Watch::Watch(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
Watch::~Watch() = default;

std::unique_ptr<Watch> Watch::open(EventLoop& loop, io::Descriptor descriptor) {
  auto inside = std::make_unique<Inside>(AsioDescriptor(loop.inside_->context));
  boost::system::error_code error;
  inside->descriptor.assign(descriptor.get(), error);
  if (error) return nullptr;
  descriptor.release();
  return std::unique_ptr<Watch>(new Watch(std::move(inside)));
}

int Watch::descriptor() const { return inside_->descriptor.native_handle(); }

void Watch::when_readable(EventLoop::Task task) {
  inside_->wait(AsioDescriptor::wait_read, std::move(task));
}

void Watch::when_writable(EventLoop::Task task) {
  inside_->wait(AsioDescriptor::wait_write, std::move(task));
}

void Watch::when_failed(EventLoop::Task task) {
  inside_->wait(AsioDescriptor::wait_error, std::move(task));
}

void Watch::close() {
  boost::system::error_code ignored;
  inside_->descriptor.close(ignored);
}

struct Timer::Inside {
  AsioTimer timer;
  uint64_t starts = 0;  // one that has run out already may still be called after it was stopped
};

Timer::Timer(EventLoop& loop)
    : inside_(std::make_unique<Inside>(AsioTimer(loop.inside_->context))) {}
Timer::~Timer() = default;

void Timer::start(std::chrono::milliseconds time, EventLoop::Task task) {
  const uint64_t start = ++inside_->starts;
  inside_->timer.expires_after(time);
  inside_->timer.async_wait([inside = inside_.get(), start,
                             task = std::move(task)](const boost::system::error_code& error) {
    if (!error && inside->starts == start) task();
  });
}

void Timer::stop() {
  ++inside_->starts;
  inside_->timer.cancel();
}

}  // namespace deltafin::serve
