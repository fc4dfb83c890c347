// One thread that waits for descriptors, timers and what other threads post to it: Asio, behind a
// header that costs nothing to include.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "io/descriptor.h"

namespace deltafin::serve {

class EventLoop {
 public:
  using Task = std::function<void()>;

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs tasks on the calling thread until close() was called and nothing is left to wait for.
  void run();
  // From any thread. False once the loop is closed: the task will not run.
  bool post(Task task);
  // No more posts. What was posted still runs.
  void close();

 private:
  friend class Watch;
  friend class Timer;
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// A descriptor of the loop. Only on the loop's thread. Each wait calls its task once, when the
// descriptor is ready or has failed, unless close() comes first. A task must keep alive what owns
// this object.
class Watch {
 public:
  // Null when the system cannot watch one more.
  static std::unique_ptr<Watch> open(EventLoop& loop, io::Descriptor descriptor);
  ~Watch();

  int descriptor() const;
  void when_readable(EventLoop::Task task);
  void when_writable(EventLoop::Task task);
  void when_failed(EventLoop::Task task);
  // Tasks that wait are dropped without being called.
  void close();

 private:
  struct Inside;
  explicit Watch(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

// Calls one task at a time. Only on the loop's thread. The task must keep alive what owns this
// object.
class Timer {
 public:
  explicit Timer(EventLoop& loop);
  ~Timer();

  // In place of the task that waits, if any.
  void start(std::chrono::milliseconds time, EventLoop::Task task);
  void stop();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace deltafin::serve
