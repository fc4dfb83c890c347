// What the readers that really read have in common: queues by priority, bounds, channels and
// completions. How a piece of a request is read is up to them.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "io/reader.h"
#include "io/retry.h"

namespace deltafin::io {

// Hints are read in pieces, and only so many bytes of them are on their way at once: what a demand
// that arrives meanwhile has to wait for (docs/ledger.md, L-0047).
inline constexpr uint64_t kHintPieceBytes = 512ull << 10;
inline constexpr uint64_t kHintBytesInFlight = 2 * kHintPieceBytes;

// Everything is guarded by one mutex: requests are megabytes, so the lock is taken a few thousand
// times a second at most. It is never held during a read.
class QueuedReader : public Reader {
 public:
  // What a reader knows of one channel.
  struct Inbox {
    std::deque<ReadCompletion> completions;
    size_t pieces_in_flight = 0;
    std::condition_variable arrived;  // a completion was added, or a piece ended
  };

  struct Bounds {
    size_t in_flight_count = 0;  // pieces
    uint64_t in_flight_bytes = 0;
  };

  ~QueuedReader() override;

  std::unique_ptr<ReadChannel> open_channel(ReadPriority priority) override;
  ReaderCounters snapshot() const override;

  // For the channels.
  void submit(ReadPriority priority, Inbox& inbox, std::span<const ReadRequest> requests);
  ReadCompletion wait(Inbox& inbox);
  std::optional<ReadCompletion> poll(Inbox& inbox);
  void withdraw(ReadPriority priority, Inbox& inbox);
  void cancel(ReadPriority priority, Inbox& inbox);
  void close(ReadPriority priority, Inbox& inbox);

 protected:
  // A request, from submit() until its completion.
  struct Job {
    Inbox* inbox = nullptr;
    ReadPriority priority = ReadPriority::Demand;
    ReadRequest request;
    uint64_t handed_out = 0;  // bytes, from the start
    size_t pieces_in_flight = 0;
    bool withdrawn = false;
    Status status;
    uint64_t direct_bytes = 0;
  };
  using Queue = std::list<Job>;

  // A part of a request on its way: all of it, or one of the pieces of a hint.
  struct Piece {
    Queue::iterator job;
    uint64_t offset = 0;  // in the file
    std::span<std::byte> into;
  };

  QueuedReader(const Bounds& bounds, DirectReads direct) : bounds_(bounds), direct_(direct) {}

  // Something may be there to start. Called without the mutex.
  virtual void wake() = 0;
  // With the mutex held, which may be let go meanwhile: until something has happened that may have
  // brought `inbox` a completion.
  virtual void wait_for(Inbox& inbox, std::unique_lock<std::mutex>& lock);
  // For readers whose reads run on the caller's thread: reads what can be started.
  virtual void help(std::unique_lock<std::mutex>& /*lock*/) {}

  // With the mutex held.
  bool can_start() const;
  Piece start_next();  // the most urgent; only when can_start()
  void finish(const Piece& piece, ReadOutcome outcome);
  size_t in_flight_count() const { return in_flight_count_; }

  // Without the mutex: how a started piece is to be read, and what follows once it was.
  ReadSteps steps_of(const Piece& piece) const;
  void drop_behind(const Piece& piece, const ReadOutcome& outcome) const;

  mutable std::mutex mutex_;

 private:
  const Queue* most_urgent_queue() const;
  static uint64_t next_piece_size(const Job& job);
  bool has_room_for(const Job& job) const;
  void retire(Queue::iterator job);

  const Bounds bounds_;
  const DirectReads direct_;
  std::array<Queue, kReadPriorityCount> queues_;  // not yet handed out, or not completely
  Queue handed_out_;                              // until their last piece has ended
  size_t in_flight_count_ = 0;                    // pieces
  uint64_t in_flight_bytes_ = 0, hint_bytes_in_flight_ = 0;
  size_t channel_count_ = 0;
  ReaderCounters counters_;
};

}  // namespace deltafin::io
