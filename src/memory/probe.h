// How fast this machine reads its disk and its memory and multiplies, in a few seconds: what a
// forecast needs to know.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/thread_team.h"
#include "numerics/kernels.h"

namespace deltafin::memory {

struct DiskRate {
  double bytes_per_second = 0;
  // Read past the page cache. Where the file system refuses that, pages were dropped before each
  // read, and the rate may still be that of a cache.
  bool is_direct = false;
};

// Reads of up to 8 MiB at random places of `paths`, a few at a time, for about `limit`. Empty when
// none of the files can be read, or all are smaller than a page.
std::optional<DiskRate> probe_disk(std::span<const std::string> paths,
                                   std::chrono::milliseconds limit);

// Bytes a second that the team reads from memory, for about `limit`: half of it to touch memory, as
// much as goes, at most 512 MiB. Empty when there is no memory for it.
std::optional<double> probe_memory(ThreadTeam& team, std::chrono::milliseconds limit);

// Operations a second (a multiplication and an addition are two) of a product of weights in
// `format` with many columns, as in prefill.
double probe_arithmetic(ThreadTeam& team, const numerics::Kernels& kernels,
                        numerics::WeightFormat format, std::chrono::milliseconds limit);

}  // namespace deltafin::memory
