// What the machine can do at best. Measured beside every row, because a machine that others use too
// is not equally fast at all times: a row is judged against the roof of its own moment.
#pragma once

#include <cstddef>

#include "base/thread_team.h"
#include "io/arena.h"

namespace deltafin::bench {

// Measures how fast a team reads memory. Holds 1 GiB, so that hardly anything is found in a cache.
class ReadRoof {
 public:
  ReadRoof();

  // Bytes per second: the best of a few passes over 256 MiB, 20 to 40 ms each. Half of the passes
  // read one stream a thread, half sixteen with prefetches, like a kernel with sixteen rows in
  // flight, which is faster on some processors.
  double measure(ThreadTeam& team);

 private:
  io::Arena memory_;
  size_t next_pass_ = 0;
};

// Floating-point operations per second (a fused multiply-add is two) of independent fma chains in
// registers: the best of a few regions, 2 ms each. `vector_bits` is 512 or 256 where this processor
// has them; any other value means whatever the compiler makes of std::fma.
double fma_roof(ThreadTeam& team, size_t vector_bits);

// The widest vectors fma_roof can use here; 0 where there are neither 512 nor 256 bits.
size_t widest_vector_bits();

}  // namespace deltafin::bench
