// The one policy for reads that do not arrive at once, shared by every reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "io/file.h"

namespace deltafin::io {

struct ReadOutcome {
  Status status;         // Io, naming path, offset, expected and got
  uint64_t retries = 0;  // further tries after an error or a short read
};

// Fills `into` from `offset`. A read that delivers something is continued where it stopped, as
// often as it takes: POSIX lets any read be short. A read that delivers nothing (an error, or the
// end of the file) is tried once more: disks and network mounts do recover, and an error seen twice
// in a row is there to stay. When this fails, `into` holds bytes of no meaning.
ReadOutcome read_with_retry(const File& file, uint64_t offset, std::span<std::byte> into);

}  // namespace deltafin::io
