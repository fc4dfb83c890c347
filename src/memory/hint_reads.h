// Reads of experts that somebody thinks will be needed soon: each on a channel of its own, so that
// one can be withdrawn, or waited for, without the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "io/reader.h"
#include "memory/expert_cache.h"

namespace deltafin::memory {

// Not thread-safe: the engine thread owns it.
class HintReads {
 public:
  // An expert on its way.
  struct Read {
    size_t key = 0;
    ExpertCache::Slot slot = 0;
    uint64_t bytes = 0;
    bool withdrawn = false;  // what was on its way still comes
    Status status = {};      // of what has come so far
    std::unique_ptr<io::ReadChannel> channel = nullptr;
  };

  explicit HintReads(io::Reader& reader) : reader_(reader) {}

  void start(size_t key, ExpertCache::Slot slot, std::span<const io::ReadRequest> requests);
  // Takes what has come. The completed ones, good or not, are no longer under way afterwards; their
  // channel is idle.
  std::vector<Read> take_completed();
  // Nothing more of it is started; it completes, nearly always with an error, when what is on its
  // way has come.
  void withdraw(Read& read) {
    if (!std::exchange(read.withdrawn, true)) read.channel->withdraw();
  }

  std::span<Read> under_way() { return reads_; }
  // Waits until the oldest has something to say; only when some are under way.
  void wait();

 private:
  void note(Read& read, const io::ReadCompletion& completion) {
    if (!completion.status) read.status = completion.status;
  }

  io::Reader& reader_;
  std::vector<Read> reads_;
  std::vector<std::unique_ptr<io::ReadChannel>> idle_;
};

}  // namespace deltafin::memory
