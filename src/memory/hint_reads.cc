#include "memory/hint_reads.h"

#include <utility>

#include "base/check.h"

namespace deltafin::memory {

void HintReads::start(size_t key, ExpertCache::Slot slot,
                      std::span<const io::ReadRequest> requests) {
  Read& read = reads_.emplace_back(Read{.key = key, .slot = slot});
  for (const io::ReadRequest& request : requests) read.bytes += request.into.size();
  if (idle_.empty()) {
    read.channel = reader_.open_channel(io::ReadPriority::Hint);
  } else {
    read.channel = std::move(idle_.back());
    idle_.pop_back();
  }
  read.channel->submit(requests);
}

std::vector<HintReads::Read> HintReads::take_completed() {
  std::vector<Read> completed;
  for (size_t i = 0; i < reads_.size();) {
    Read& read = reads_[i];
    while (std::optional<io::ReadCompletion> completion = read.channel->poll())
      note(read, *completion);
    if (read.channel->outstanding() > 0) {
      ++i;
      continue;
    }
    idle_.push_back(std::move(read.channel));
    completed.push_back(std::move(read));
    reads_.erase(reads_.begin() + ptrdiff_t(i));
  }
  return completed;
}

void HintReads::wait() {
  CHECK(!reads_.empty());
  // In the order of submission, in which they are also read.
  if (const std::optional<io::ReadCompletion> completion = reads_.front().channel->wait())
    note(reads_.front(), *completion);
}

}  // namespace deltafin::memory
