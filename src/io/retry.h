// The one policy for reads that do not arrive at once, shared by every reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "io/file.h"

namespace deltafin::io {

struct ReadOutcome {
  Status status;              // Io, naming path, offset, expected and got
  uint64_t retries = 0;       // further tries after an error or a short read
  uint64_t direct_bytes = 0;  // that came past the page cache
};

struct ReadTarget {
  const File& file;
  uint64_t offset = 0;
  std::span<std::byte> into;
  // Begin with direct reads, which may write the surroundings of `into` up to the next borders of
  // kDirectAlignment. Only where can_be_direct().
  bool direct = false;
};

// Whether aligned reads can bring these bytes to their place, with nothing written but `into` or,
// where `surroundings_writable`, its surroundings. The first call for a file may touch the disk.
bool can_be_direct(const File& file, uint64_t offset, std::span<const std::byte> into,
                   bool surroundings_writable);

// Fills `into` from `offset`, as a list of steps that somebody else reads. A read that delivers
// something is continued where it stopped, as often as it takes: POSIX lets any read be short. A
// read that delivers nothing new (an error, or the end of the file) is tried once more: disks and
// network mounts do recover, and an error seen twice in a row is there to stay. The second try is
// never direct: where direct reads fail although they were promised, others may work. When all
// fails, `into` holds bytes of no meaning.
class ReadSteps {
 public:
  struct Step {
    bool direct = false;
    uint64_t offset = 0;
    std::span<std::byte> into;
  };

  explicit ReadSteps(const ReadTarget& target) : target_(target), direct_(target.direct) {}

  bool done() const { return failed_ || got_ == target_.into.size(); }
  // What to read now; only while not done.
  Step next() const;
  // What came of next().
  void take(const Result<size_t>& answer);
  ReadOutcome& outcome() { return outcome_; }

 private:
  ReadTarget target_;
  bool direct_;
  size_t got_ = 0;
  bool last_try_ = false;
  bool failed_ = false;
  ReadOutcome outcome_;
};

// One step, by the file's own functions.
Result<size_t> read_step(const File& file, const ReadSteps::Step& step);

// All steps.
ReadOutcome read_with_retry(const ReadTarget& target);

}  // namespace deltafin::io
