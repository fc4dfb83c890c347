#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "io/reader.h"
#include "io/retry.h"

namespace deltafin::io {

namespace {

// Everything is guarded by one mutex: requests are megabytes, so the lock is taken a few thousand
// times a second at most. It is never held during a read.
class ThreadReader final : public Reader {
 public:
  // What the workers know of one channel.
  struct Inbox {
    std::deque<ReadCompletion> completions;
    size_t started_count = 0;         // requests that a thread is reading
    std::condition_variable arrived;  // a completion was added
  };

  explicit ThreadReader(const ThreadReaderOptions& options);
  ~ThreadReader() override;

  std::unique_ptr<ReadChannel> open_channel(ReadPriority priority) override;
  ReaderCounters snapshot() const override;
  const char* name() const override { return "pread"; }

  void submit(ReadPriority priority, Inbox& inbox, std::span<const ReadRequest> requests);
  ReadCompletion wait(Inbox& inbox);
  std::optional<ReadCompletion> poll(Inbox& inbox);
  void cancel(ReadPriority priority, Inbox& inbox);
  void close(ReadPriority priority, Inbox& inbox);

 private:
  struct Job {
    Inbox* inbox = nullptr;
    ReadRequest request;
  };
  using Queue = std::deque<Job>;

  Queue* most_urgent_queue();
  bool can_start();
  void run_next(std::unique_lock<std::mutex>& lock);
  void work();

  const uint64_t in_flight_bytes_max_;
  mutable std::mutex mutex_;
  std::condition_variable startable_;  // a queue or the bytes in flight changed
  std::array<Queue, kReadPriorityCount> queues_;
  uint64_t in_flight_bytes_ = 0;
  size_t in_flight_count_ = 0;
  size_t channel_count_ = 0;
  bool stopping_ = false;
  ReaderCounters counters_;
  std::vector<std::thread> threads_;
};

class ThreadReadChannel final : public ReadChannel {
 public:
  ThreadReadChannel(ThreadReader& reader, ReadPriority priority)
      : reader_(reader), priority_(priority) {}
  ~ThreadReadChannel() override { reader_.close(priority_, inbox_); }

  void submit(std::span<const ReadRequest> requests) override {
    reader_.submit(priority_, inbox_, requests);
    outstanding_count_ += requests.size();
  }

  std::optional<ReadCompletion> wait() override {
    if (outstanding_count_ == 0) return std::nullopt;
    --outstanding_count_;
    return reader_.wait(inbox_);
  }

  std::optional<ReadCompletion> poll() override {
    if (outstanding_count_ == 0) return std::nullopt;
    std::optional<ReadCompletion> completion = reader_.poll(inbox_);
    if (completion) --outstanding_count_;
    return completion;
  }

  void cancel() override {
    reader_.cancel(priority_, inbox_);
    outstanding_count_ = 0;
  }

  size_t outstanding() const override { return outstanding_count_; }

 private:
  ThreadReader& reader_;
  const ReadPriority priority_;
  ThreadReader::Inbox inbox_;  // guarded by the reader's mutex
  size_t outstanding_count_ = 0;
};

ThreadReader::ThreadReader(const ThreadReaderOptions& options)
    : in_flight_bytes_max_(options.in_flight_bytes) {
  for (size_t i = 0; i < options.thread_count; ++i) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      break;  // fewer threads read slower, and none at all is the mode of run_next() in wait()
    }
  }
}

ThreadReader::~ThreadReader() {
  {
    const std::lock_guard lock(mutex_);
    CHECK(channel_count_ == 0);
    stopping_ = true;
  }
  startable_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::unique_ptr<ReadChannel> ThreadReader::open_channel(ReadPriority priority) {
  {
    const std::lock_guard lock(mutex_);
    ++channel_count_;
  }
  return std::make_unique<ThreadReadChannel>(*this, priority);
}

ReaderCounters ThreadReader::snapshot() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void ThreadReader::submit(ReadPriority priority, Inbox& inbox,
                          std::span<const ReadRequest> requests) {
  {
    const std::lock_guard lock(mutex_);
    for (const ReadRequest& request : requests) {
      CHECK(request.file != nullptr);
      queues_[size_t(priority)].push_back({&inbox, request});
    }
  }
  startable_.notify_all();
}

ReadCompletion ThreadReader::wait(Inbox& inbox) {
  std::unique_lock lock(mutex_);
  while (inbox.completions.empty()) {
    if (threads_.empty()) {
      run_next(lock);
    } else {
      inbox.arrived.wait(lock);
    }
  }
  ReadCompletion completion = std::move(inbox.completions.front());
  inbox.completions.pop_front();
  return completion;
}

std::optional<ReadCompletion> ThreadReader::poll(Inbox& inbox) {
  std::unique_lock lock(mutex_);
  if (threads_.empty() && inbox.completions.empty() && can_start()) run_next(lock);
  if (inbox.completions.empty()) return std::nullopt;
  ReadCompletion completion = std::move(inbox.completions.front());
  inbox.completions.pop_front();
  return completion;
}

void ThreadReader::cancel(ReadPriority priority, Inbox& inbox) {
  std::unique_lock lock(mutex_);
  counters_.cancelled +=
      std::erase_if(queues_[size_t(priority)], [&](const Job& job) { return job.inbox == &inbox; });
  startable_.notify_all();  // what waited behind a large withdrawn request may fit now
  inbox.arrived.wait(lock, [&] { return inbox.started_count == 0; });
  inbox.completions.clear();
}

void ThreadReader::close(ReadPriority priority, Inbox& inbox) {
  cancel(priority, inbox);
  const std::lock_guard lock(mutex_);
  --channel_count_;
}

ThreadReader::Queue* ThreadReader::most_urgent_queue() {
  for (Queue& queue : queues_)
    if (!queue.empty()) return &queue;
  return nullptr;
}

bool ThreadReader::can_start() {
  const Queue* queue = most_urgent_queue();
  if (queue == nullptr) return false;
  if (in_flight_count_ == 0) return true;  // one request larger than the bound may run alone
  const uint64_t size = queue->front().request.into.size();
  return size <= in_flight_bytes_max_ && in_flight_bytes_ <= in_flight_bytes_max_ - size;
}

// Takes the most urgent request, reads it without the lock and delivers its completion.
void ThreadReader::run_next(std::unique_lock<std::mutex>& lock) {
  Queue& queue = *most_urgent_queue();
  const Job job = queue.front();
  queue.pop_front();
  const ReadRequest& request = job.request;
  ++job.inbox->started_count;
  ++in_flight_count_;
  in_flight_bytes_ += request.into.size();

  lock.unlock();
  ReadOutcome outcome = read_with_retry(*request.file, request.offset, request.into);
  lock.lock();

  in_flight_bytes_ -= request.into.size();
  --in_flight_count_;
  --job.inbox->started_count;
  counters_.reads += 1;
  counters_.retries += outcome.retries;
  if (outcome.status) {
    counters_.bytes += request.into.size();
  } else {
    counters_.failures += 1;
  }
  job.inbox->completions.push_back({request.tag, std::move(outcome.status)});
  // Under the lock: once it is released, the channel may be gone.
  job.inbox->arrived.notify_one();
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
