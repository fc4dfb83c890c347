#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "io/queued_reader.h"

namespace deltafin::io {

namespace {

class ThreadReader final : public QueuedReader {
 public:
  explicit ThreadReader(const ThreadReaderOptions& options);
  ~ThreadReader() override;

  const char* name() const override { return "pread"; }

 private:
  void wake() override { startable_.notify_all(); }
  void wait_for(Inbox& inbox, std::unique_lock<std::mutex>& lock) override;
  void help(std::unique_lock<std::mutex>& lock) override;

  void run_next(std::unique_lock<std::mutex>& lock);
  void work();

  std::condition_variable startable_;  // the queues or what is in flight changed
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

ThreadReader::ThreadReader(const ThreadReaderOptions& options)
    : QueuedReader({.in_flight_count = std::max<size_t>(options.thread_count, 1),
                    .in_flight_bytes = options.in_flight_bytes},
                   options.direct) {
  for (size_t i = 0; i < options.thread_count; ++i) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      break;  // fewer threads read slower, and none at all is the mode of help()
    }
  }
}

ThreadReader::~ThreadReader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  startable_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadReader::wait_for(Inbox& inbox, std::unique_lock<std::mutex>& lock) {
  if (!threads_.empty()) {
    QueuedReader::wait_for(inbox, lock);
  } else if (can_start()) {
    run_next(lock);
  } else {
    startable_.wait(lock);  // the owner of another channel is reading, perhaps for this one
  }
}

void ThreadReader::help(std::unique_lock<std::mutex>& lock) {
  if (threads_.empty() && can_start()) run_next(lock);
}

// Takes the most urgent piece, reads it without the lock and delivers what came.
void ThreadReader::run_next(std::unique_lock<std::mutex>& lock) {
  const Piece piece = start_next();
  const File& file = *piece.job->request.file;
  lock.unlock();
  ReadSteps steps = steps_of(piece);
  while (!steps.done()) steps.take(read_step(file, steps.next()));
  drop_behind(piece, steps.outcome());
  lock.lock();
  finish(piece, std::move(steps.outcome()));
  startable_.notify_all();
}

void ThreadReader::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    startable_.wait(lock, [this] { return stopping_ || can_start(); });
    if (stopping_) return;
    run_next(lock);
  }
}

}  // namespace

std::unique_ptr<Reader> make_thread_reader(const ThreadReaderOptions& options) {
  return std::make_unique<ThreadReader>(options);
}

}  // namespace deltafin::io
