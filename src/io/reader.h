// Bounded asynchronous positional reads.
//
// A client opens a channel, hands in any number of requests at once and collects completions as
// they arrive, in any order. The reader decides what is in flight: demand before trunk before
// hints, and never more bytes than its bound, so queueing a whole layer's experts at once is cheap
// and right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "io/file.h"

namespace deltafin::io {

// Most urgent first. A request starts only when nothing more urgent waits, even if it alone would
// still fit under the byte bound; within one priority, requests start in the order of submission.
enum class ReadPriority : uint8_t { Demand, Trunk, Hint };
inline constexpr size_t kReadPriorityCount = 3;

struct ReadRequest {
  const File* file = nullptr;  // must outlive the completion
  uint64_t offset = 0;         // bytes from the start of the file
  // Filled completely, or the completion carries an error and the bytes mean nothing. Belongs to
  // the reader from submit() to the completion or the end of cancel(). May be empty.
  std::span<std::byte> into;
  uint64_t tag = 0;  // comes back with the completion
  // Whether the reader may also write what lies around `into`, up to the next borders of
  // kDirectAlignment in memory. Then, and where `offset` and the address of `into` are congruent
  // modulo kDirectAlignment, one aligned direct read can fetch an unaligned request.
  bool surroundings_writable = false;
};

struct ReadCompletion {
  uint64_t tag = 0;
  // Io, naming path, offset, expected and got. Failed and short reads are tried again once before
  // they become an error (io/retry.h). Cancelled, after withdraw().
  Status status;
};

struct ReaderCounters {
  uint64_t reads = 0;         // completed, with or without success, and not withdrawn
  uint64_t bytes = 0;         // delivered by successful reads
  uint64_t direct_bytes = 0;  // of those, what came past the page cache
  uint64_t failures = 0;      // completions that carried an error
  uint64_t retries = 0;       // further tries after an error or a short read
  uint64_t cancelled = 0;     // requests that were withdrawn before all of them was on its way
};

// One client's queue. Not thread-safe: one thread owns a channel.
class ReadChannel {
 public:
  // Cancels: no buffer is touched afterwards.
  virtual ~ReadChannel() = default;

  // Never blocks on the disk and never fails; every request completes exactly once, or is withdrawn
  // or dropped by cancel().
  virtual void submit(std::span<const ReadRequest> requests) = 0;
  // The next completion; waits for it. Empty when nothing is outstanding.
  virtual std::optional<ReadCompletion> wait() = 0;
  // The next completion if one is there.
  virtual std::optional<ReadCompletion> poll() = 0;
  // Withdraws what is queued, also the rest of what is read in pieces, and waits for nothing: every
  // request still completes, a withdrawn one with an error once nothing writes into it any more.
  virtual void withdraw() = 0;
  // Withdraws queued requests, waits for started ones and drops their completions. The channel is
  // empty afterwards and may be used again.
  virtual void cancel() = 0;
  // Requests whose completions were not yet collected.
  virtual size_t outstanding() const = 0;
};

// Thread-safe. Outlives its channels.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual std::unique_ptr<ReadChannel> open_channel(ReadPriority priority) = 0;
  virtual ReaderCounters snapshot() const = 0;
  // "io_uring", "pread", "simulated": for --stats and doctor.
  virtual const char* name() const = 0;
};

// Whether reads go past the page cache.
enum class DirectReads : uint8_t {
  Off,   // never
  Auto,  // where the file and the place in memory allow it
  On,    // the same, and large reads that had to use the page cache are dropped from it
};

struct ThreadReaderOptions {
  size_t thread_count = 4;                 // large reads saturate a disk with 2-8 in flight
  uint64_t in_flight_bytes = 64ull << 20;  // one larger request may run alone
  DirectReads direct = DirectReads::Auto;
};

// Positional reads on a few threads. With a thread_count of 0, or where the system refuses to start
// even one thread, the reads run inside wait() and poll() of the channel's owner.
std::unique_ptr<Reader> make_thread_reader(const ThreadReaderOptions& options);

struct UringReaderOptions {
  // Requests, or pieces of hints, in flight. More only make each wait longer: they share one disk.
  uint32_t in_flight_count = 8;
  uint64_t in_flight_bytes = 64ull << 20;  // one larger request may run alone
  DirectReads direct = DirectReads::Auto;
};

// Reads by io_uring: one thread hands them to the kernel and collects what came. Files without a
// descriptor are read by that thread, one at a time. Errors: Io, saying why the kernel, or what
// confines this process (a container, kernel.io_uring_disabled), does not let us.
Result<std::unique_ptr<Reader>> make_uring_reader(const UringReaderOptions& options);

enum class ReaderKind : uint8_t {
  Auto,  // io_uring where it works, else threads
  Uring,
  Threads,
};

struct OpenedReader {
  std::unique_ptr<Reader> reader;
  std::string why_not_uring;  // with Auto, where io_uring does not work
};

// Errors: Io, when io_uring was asked for and does not work.
Result<OpenedReader> open_reader(ReaderKind kind, DirectReads direct);

}  // namespace deltafin::io
